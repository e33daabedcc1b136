/** The output of `npm run build`, in a directory without packages: it must not load anything from elsewhere. */
import { cp, readdir, readFile, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { ask } from "../support/ask.ts";
import { buildInto } from "../support/build.ts";
import { startChild } from "../support/child.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { BUILT } from "../support/entry.ts";
import { ALICE, cheapHash, type ConfigParts, startSallyport } from "../support/sallyport.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

const REPOSITORY = resolve(import.meta.dirname, "../..");

let directory: TemporaryDirectory;
let dist: string;
let main: string;

beforeAll(async () => {
  directory = await temporaryDirectory();
  // An unrelated package, whose files are not ES modules.
  await directory.write("package.json", '{ "type": "commonjs" }');
  dist = join(directory.path, "dist");
  const built = process.env[BUILT];
  if (built === undefined) await buildInto(dist);
  else await cp(dirname(built), dist, { recursive: true });
  main = join(dist, "main.js");
}, 60_000);

afterAll(() => directory?.close());

it("includes the licences of all direct and transitive dependencies and of the bundler", async () => {
  const text = await readFile(join(dist, "THIRD-PARTY-LICENSES.txt"), "utf8");
  const heads = text.matchAll(/^-+\n\n((?:\S+ \d\S* \([\w .()-]+\)\n)+)\n./gm);
  const told = [...heads].flatMap(([, titles = ""]) => titles.match(/^\S+/gm) ?? []);
  const folders = ["src", "tools"].map((folder) => packagesImported(join(REPOSITORY, folder)));
  const imported = (await Promise.all(folders))
    .flat()
    .filter((name) => !name.startsWith("@sallyport/"));
  expect(imported.length).toBeGreaterThan(5);
  expect(told).toEqual(expect.arrayContaining([...imported, "@peculiar/x509", "rolldown"]));
  expect(told).not.toContain("vitest");
});

it("is smaller than before remote user stores existed", async () => {
  const sizes = (await readdir(dist)).map(async (name) => (await stat(join(dist, name))).size);
  const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size);
  expect(bytes).toBeLessThan(3_180_000);
});

it("loads no library before it has checked the version of Node", async () => {
  const loaded = await loadedAtOnce("main.js");
  expect([...loaded.values()].filter((text) => text.includes("node_modules/"))).toEqual([]);
  const serving = await loadedAtOnce("thread.js");
  expect([...serving.values()].some((text) => text.includes("node_modules/"))).toBe(true);
});

it("loads no code for configurations, certificates or the command line in a worker", async () => {
  const loaded = [...(await loadedAtOnce("thread.js")).values()].join("\n");
  const modules = [...loaded.matchAll(/^\/\/ ((?:src|tools|node_modules)\/\S+)$/gm)].map(
    ([, name]) => name,
  );
  expect(modules).toEqual(
    expect.arrayContaining(["src/app/threads/thread.ts", "src/server/request/pipeline.ts"]),
  );
  const unwanted =
    /^(src\/cli\/|tools\/|src\/config\/(?!sections\/routes\/route-row)|node_modules\/(zod|selfsigned|@opentelemetry\/sdk|bcryptjs)\b)/;
  expect(modules.filter((name = "") => unwanted.test(name))).toEqual([]);
});

it("loads little in threads for one kind of work, and for a health check", async () => {
  for (const entry of ["hashing-worker", "users-worker", "sqlite-worker", "watchdog-thread"]) {
    const loaded = await loadedAtOnce(`${entry}.js`);
    expect([entry, [...loaded.keys()].filter((name) => name.includes("for-"))]).toEqual([
      entry,
      [],
    ]);
  }
  const check = [...(await loadedAtOnce("healthcheck.js")).values()].join("\n");
  expect(check).not.toMatch(/^\/\/ (?:src\/(?:app|server|tokens)|node_modules\/zod)\//m);
});

it("loads the library of a user store or of shared state only if it is configured", async () => {
  const entries = [
    "main.js",
    "thread.js",
    "hashing-worker.js",
    "watchdog-thread.js",
    "users-worker.js",
  ];
  const modules = await Promise.all(
    entries.map(async (entry) => [...(await loadedAtOnce(entry)).values()].join("\n")),
  );
  expect(modules.join("\n")).not.toMatch(LAZY);
  // The bundle contains them nevertheless.
  const names = (await readdir(dist)).filter((name) => name.endsWith(".js"));
  const all = await Promise.all(names.map((name) => readFile(join(dist, name), "utf8")));
  const found = new Set(
    [...all.join("\n").matchAll(new RegExp(LAZY, "gm"))].map(([, name]) => name),
  );
  expect(found).toEqual(new Set(["ldapts", "openid-client", "pg"]));
});

it("has no class that extends String: once V8 has loaded one, each request takes 14 % more CPU", async () => {
  const names = (await readdir(dist)).filter((name) => name.endsWith(".js"));
  for (const name of names) {
    const text = await readFile(join(dist, name), "utf8");
    expect([name, text.match(/\bextends String\b|create\(String\.prototype/)]).toEqual([
      name,
      null,
    ]);
  }
});

it("loads none of these libraries at run time with users in a file", async () => {
  expect(await loadedBy({})).toEqual([]);
  const postgres = {
    kind: "postgres",
    url: "postgres://u:p@127.0.0.1:9/d",
    query: "SELECT $1",
    tls: false,
  };
  const file = { kind: "file", path: "users.yaml" };
  // The same before the first login; afterwards, only those that are queried.
  expect(await loadedBy({ users: [file, postgres] }, false)).toEqual([]);
  expect(await loadedBy({ users: [file, postgres] }, true)).toEqual(["pg"]);
});

it("knows its version", async () => {
  const about = await readFile(join(REPOSITORY, "package.json"), "utf8");
  const { version } = JSON.parse(about) as { version: string };
  const child = startChild(main, ["version"]);
  expect(await child.exit).toBe(0);
  expect(child.lines).toEqual([version]);
  expect(child.stderr()).toBe("");
});

it("serves with several threads, reads many users in another, and verifies passwords in yet another", async () => {
  vi.stubEnv("SALLYPORT_ENTRY", main);
  onTestFinished(() => void vi.unstubAllEnvs());
  const backend = await startEchoBackend();
  onTestFinished(() => backend.close());
  const alice = { password: cheapHash(ALICE.password) };
  const others = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [index, alice]));
  // This also logs in.
  await using gate = await startSallyport({
    target: backend.url,
    config: { server: { workers: 2 } },
    files: { "users.yaml": JSON.stringify({ users: { alice, ...others } }) },
  });
  expect(await ask(gate, "/orders", { token: gate.token })).toMatchObject({ status: 200 });
  expect(gate.stderr()).toBe("");
});

it("creates a certificate for the demo", async () => {
  expect(await complaintsOfDemo()).toBe("");
});

it("does not load Node's fetch and WebSocket, which take 16 MB", async () => {
  const tell = `process.on("exit", () => console.error("loaded:", process.moduleLoadList.filter((name) => name.includes("deps/undici"))))`;
  vi.stubEnv("NODE_OPTIONS", `--import=data:text/javascript,${encodeURIComponent(tell)}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(await complaintsOfDemo()).toBe("loaded: []\n");
});

/** Matches parts of the bundle that come from one of these libraries. */
const LAZY = /^\/\/ node_modules\/(ldapts|openid-client|pg)\//m;

/** Returns which of these libraries a process has loaded after logins of alice and of a user missing in all files. */
async function loadedBy(config: ConfigParts, strangerLogsIn = true): Promise<string[]> {
  const hook = `import { registerHooks } from "node:module";
registerHooks({ load(url, context, next) { console.error("loaded " + url); return next(url, context); } });`;
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` };
  vi.stubEnv("SALLYPORT_ENTRY", main);
  onTestFinished(() => void vi.unstubAllEnvs());
  await using gate = await startSallyport({ target: "http://127.0.0.1:9", config, env });
  if (strangerLogsIn) await gate.login("mallory", "apple").catch(() => undefined);
  await gate.stop();
  const files = [...gate.stderr().matchAll(/^loaded file:\/\/(\S+)$/gm)].map(
    ([, file = ""]) => file,
  );
  expect(files).toContain(main);
  const texts = await Promise.all(files.map((file) => readFile(file, "utf8")));
  return texts.flatMap((text) => LAZY.exec(text)?.[1] ?? []);
}

/** Runs the demo until it is up, then stops it. Returns its standard error. */
async function complaintsOfDemo(): Promise<string> {
  const ports = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
  const child = startChild(main, ["demo", ...ports]);
  onTestFinished(() => child.kill());
  await child.line((line) => line.includes('"admin listening"') || undefined);
  child.signal("SIGTERM");
  expect(await child.exit).toBe(0);
  return child.stderr();
}

/**
 * Returns the text of a file of the bundle and of its static imports; comments in them name the origin of each part.
 */
async function loadedAtOnce(name: string, loaded = new Map<string, string>()) {
  const text = await readFile(join(dist, name), "utf8");
  loaded.set(name, text);
  for (const [, other = ""] of text.matchAll(/^import\b.*"\.\/([^"]+)";$/gm)) {
    if (!loaded.has(other)) await loadedAtOnce(other, loaded);
  }
  return loaded;
}

/** Returns the names of all imported packages, except for types. */
async function packagesImported(folder: string): Promise<string[]> {
  const files = await readdir(folder, { recursive: true });
  const texts = await Promise.all(
    files
      .filter((file) => file.endsWith(".ts"))
      .map((file) => readFile(join(folder, file), "utf8")),
  );
  const specifiers = texts.flatMap((text) =>
    [...text.matchAll(/^(?!import type).*(?:\bfrom |\bimport\()"([^".][^":]*)"(?:;$|\))/gm)].map(
      ([, specifier = ""]) => specifier,
    ),
  );
  return [...new Set(specifiers.map((name) => name.replace(/^((?:@[^/]+\/)?[^/]+).*$/, "$1")))];
}

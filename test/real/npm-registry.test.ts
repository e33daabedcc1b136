/** An npm registry (verdaccio) behind Sallyport, with npm as its client, which encodes scoped names with `%2f`. */
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { freePort } from "../support/dead-ends.ts";
import { type Finished, missing, runProgram, startProgram } from "../support/program.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

/** Not a development dependency, since it takes 58 MB with its dependencies. */
const VERDACCIO = "verdaccio@6.8.0";
/** verdaccio requests this one by tag, which not every mirror of the registry has. */
const OVERRIDES = { "node-fetch": "2.7.0" };
const INSTALL_MS = 110_000;
const NPM_MS = 60_000;

const stack = new AsyncDisposableStack();
let directory: TemporaryDirectory;
/** Why nothing can be tested, if so. */
let reason = missing("npm");

beforeAll(async () => {
  directory = stack.use(await temporaryDirectory());
  if (reason !== undefined) return;
  await directory.write("package.json", JSON.stringify({ private: true, overrides: OVERRIDES }));
  const quick = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const args = ["install", VERDACCIO, "--prefix", directory.path, ...quick];
  const { code, err } = await runProgram("npm", args, "", INSTALL_MS);
  if (code !== 0) reason = `${VERDACCIO} cannot be installed: ${err.slice(0, 200)}`;
});
afterAll(() => stack.disposeAsync());

/** Starts verdaccio without access control. @returns its URL. */
async function startRegistry(prefix: string, storage: string): Promise<string> {
  const port = await freePort();
  const all = { access: "$all", publish: "$all", unpublish: "$all" };
  const config = {
    storage,
    url_prefix: prefix,
    auth: {},
    packages: { "**": all },
    web: { enable: false },
    log: { type: "stdout", format: "pretty", level: "warn" },
  };
  const file = await directory.write(`${storage}.yaml`, JSON.stringify(config));
  const program = join(directory.path, "node_modules/verdaccio/bin/verdaccio");
  const listen = `127.0.0.1:${port}`;
  const server = stack.use(
    startProgram(process.execPath, [program, "--config", file, "--listen", listen]),
  );
  await until(() => {
    if (server.exited()) throw new Error(server.output());
    return ask({ port }, "/-/ping").then(
      ({ status }) => status === 200,
      () => false,
    );
  }, 60_000);
  return `http://${listen}`;
}

describe.each(["/", "/npm/"])("verdaccio below %s", (prefix) => {
  const name = prefix === "/" ? "root" : "below";
  let gate: Sallyport;
  let registry = "";
  const at = (...parts: string[]): string => join(directory.path, name, ...parts);

  beforeAll(async () => {
    if (reason !== undefined) return;
    const target = await startRegistry(prefix, `${name}-storage`);
    const stripped = prefix === "/" ? {} : { rewrite: { stripPrefix: "/npm" } };
    const limits = { bodyBytes: "100MiB" };
    const route = { name: "npm", path: prefix, upstream: "app", paths: "encoded", limits };
    gate = stack.use(
      await startSallyport({ target, config: { routes: [{ ...route, ...stripped }] } }),
    );
    registry = `https://localhost:${gate.port}${prefix}`;
    await mkdir(at("package", "lib"), { recursive: true });
    await mkdir(at("project"));
    await directory.write(`${name}/ca.pem`, gate.ca ?? "");
    const common = `registry=${registry}\ncafile=${at("ca.pem")}\ncache=${at("cache")}\nfetch-retries=0\nnoproxy=localhost\naudit=false\nfund=false\n`;
    const token = `//localhost:${gate.port}${prefix}:_authToken`;
    await directory.write(`${name}/alice`, `${common}${token}=${gate.token}\n`);
    await directory.write(`${name}/nobody`, `${common}${token}=x.y.z\n`);
    await directory.write(`${name}/package/lib/index.js`, `module.exports = "published";\n`);
    await directory.write(`${name}/project/package.json`, `{ "private": true }`);
  });

  async function npm(args: readonly string[], who = "alice"): Promise<Finished> {
    // Without the settings that `npm run` passes to its children, which override a file.
    const env = ["-i", `PATH=${process.env["PATH"]}`, `HOME=${directory.path}`];
    return runProgram("env", [...env, "npm", ...args, "--userconfig", at(who)], "", NPM_MS);
  }
  async function publish(version: string, who = "alice", ...flags: string[]): Promise<Finished> {
    const manifest = { name: "@scope/name", version, main: "lib/index.js" };
    await directory.write(`${name}/package/package.json`, JSON.stringify(manifest));
    return npm(["publish", at("package"), ...flags], who);
  }

  it("publishes, shows, tags, installs and unpublishes a scoped package", async ({ skip }) => {
    if (reason !== undefined) return skip(reason);
    const refused = await publish("1.0.0", "nobody");
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("E401")]);
    for (const [version, tag] of [
      ["1.0.0", "latest"],
      ["1.1.0-beta.1", "beta"],
    ] as const) {
      const { code, err } = await publish(version, "alice", "--tag", tag);
      expect([code, err]).toEqual([0, expect.any(String)]);
    }

    const viewed = await npm(["view", "@scope/name", "--json"]);
    const tarball = `${registry}@scope/name/-/name-1.0.0.tgz`;
    expect(JSON.parse(viewed.out)).toMatchObject({
      "dist-tags": { latest: "1.0.0", beta: "1.1.0-beta.1" },
      dist: { tarball },
    });
    expect((await npm(["dist-tag", "add", "@scope/name@1.0.0", "stable"])).code).toBe(0);
    expect((await npm(["dist-tag", "ls", "@scope/name"])).out).toContain("stable: 1.0.0");

    const into = ["--prefix", at("project")];
    const stranger = await npm(["install", "@scope/name", ...into], "nobody");
    expect([stranger.code, stranger.err]).toEqual([1, expect.stringContaining("E401")]);
    const installed = await npm(["install", "@scope/name", ...into]);
    expect([installed.code, installed.err]).toEqual([0, ""]);
    const content = await readFile(at("project/node_modules/@scope/name/lib/index.js"), "utf8");
    expect(content).toBe(`module.exports = "published";\n`);
    const lock = await readFile(at("project/package-lock.json"), "utf8");
    expect(JSON.parse(lock).packages["node_modules/@scope/name"]).toMatchObject({
      resolved: tarball,
      integrity: expect.stringMatching(/^sha512-/),
    });

    const removed = await npm(["unpublish", "@scope/name", "--force"]);
    expect([removed.code, removed.out]).toEqual([0, "- @scope/name\n"]);
    const gone = await npm(["view", "@scope/name"]);
    expect([gone.code, gone.err]).toEqual([1, expect.stringContaining("E404")]);
  }, 200_000);
});

/** `check`, `doctor` and `serve` give the same warnings, and refuse the same configurations. */
import { generateKeyPairSync } from "node:crypto";
import { chmod, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { spawnSync } from "node:child_process";
import { describe, expect, it, onTestFinished } from "vitest";
import { startApp } from "../../src/app/app.ts";
import { inspect } from "../../src/app/inspection.ts";
import { keptLines } from "../observe/kept-lines.ts";
import { startChild } from "../support/child.ts";
import { entry } from "../support/entry.ts";
import { cheapHash } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { command } from "./command.ts";

const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const PRIVATE = privateKey.export({ format: "pem", type: "pkcs8" });
const OWN = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({
  format: "pem",
  type: "pkcs8",
});
const PUBLIC = publicKey.export({ format: "pem", type: "spki" });
const USERS = JSON.stringify({ users: { alice: { password: cheapHash("a") } } });

/** Creates a sound deployment in a new directory. */
async function sound(more: Record<string, unknown> = {}): Promise<string> {
  const temporary = await temporaryDirectory();
  onTestFinished(() => temporary.close());
  const at = (name: string): string => join(temporary.path, name);
  await mkdir(at("keys"), { mode: 0o700 });
  await writeFile(at("keys/one.pem"), PRIVATE, { mode: 0o600 });
  await mkdir(at("own"), { mode: 0o700 });
  await writeFile(at("own/one.pem"), OWN, { mode: 0o600 });
  await writeFile(at("users.yaml"), USERS, { mode: 0o600 });
  const configuration = {
    // That many connections do not need more file descriptors than a test may open.
    server: {
      tls: "off",
      listen: "127.0.0.1:0",
      drain: { delay: "0s" },
      limits: { connections: 1000 },
    },
    admin: "off",
    users: [{ kind: "file", path: "users.yaml" }],
    tokens: { keys: "keys", assertion: { audience: "backend", keys: "own" } },
    upstreams: { app: { targets: ["http://127.0.0.1:1"] } },
    ...more,
  };
  await writeFile(at("config.yaml"), JSON.stringify(configuration));
  return temporary.path;
}

interface Told {
  readonly about: string;
  readonly file?: string;
  readonly message: string;
}

/** Returns the log of `serve` once it listens, in a process of its own. */
async function served(config: readonly string[]): Promise<readonly string[]> {
  const child = startChild(entry(), ["serve", ...config], { SALLYPORT_ENTRY: undefined });
  onTestFinished(() => child.kill());
  return child.line(() =>
    child.lines.some((line) => line.includes('"msg":"listening"')) ? child.lines : undefined,
  );
}

/** Returns what `serve` logs until it listens, without the process. */
async function servedHere([, file = ""]: readonly string[]): Promise<readonly string[]> {
  const { sink, lines } = keptLines();
  const snapshot = await inspect({ file, env: {}, overrides: {} });
  const app = await startApp({ snapshot, version: "0.0.0", sink, read: async () => snapshot });
  await app.stop();
  expect(lines.some((line) => line.includes('"msg":"listening"'))).toBe(true);
  return lines;
}

/** Returns the warnings of each command as file and sentence, independent of the format. */
async function warnings(directory: string, serve = servedHere) {
  const config = ["--config", join(directory, "config.yaml")];
  const told = await command(["check", "--format", "json", ...config]);
  const check = (JSON.parse(told.out) as { warnings: Told[] }).warnings;
  const examined = await command(["doctor", "--timeout", "1s", "--format", "json", ...config]);
  const { groups } = JSON.parse(examined.out) as {
    groups: { name: string; findings: { result: string; message: string }[] }[];
  };
  const doctor = groups
    .filter(({ name }) => ["configuration", "routes"].includes(name))
    .flatMap(({ findings }) => findings.filter(({ result }) => result !== "good"));
  const logged = (await serve(config))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ level }) => level === "warn" || level === "error");
  return {
    check: check.map(({ file, message }) => (file === undefined ? message : `${file}: ${message}`)),
    doctor: doctor.map(({ message }) => message),
    serve: logged.map((line) => JSON.stringify(line)),
  };
}

describe("the same warnings", () => {
  it("none for a sound deployment", async () => {
    const told = await warnings(await sound(), served);
    expect(told).toEqual({ check: [], doctor: [], serve: [] });
  });

  it("assertions without their own keys", async () => {
    const tokens = { keys: "keys", assertion: { audience: "backend" } };
    const { check, doctor, serve } = await warnings(await sound({ tokens }));
    expect(check).toEqual(["the token keys also sign assertions"]);
    expect(doctor).toEqual(check);
    expect(serve).toEqual([expect.stringContaining("the token keys also sign assertions")]);
  });

  it("weights with balance: first, which takes the first target that can be used", async () => {
    const targets = [{ url: "http://127.0.0.1:1", weight: 3 }, "http://127.0.0.1:2"];
    const upstreams = { app: { targets, balance: "first" }, other: { targets } };
    const routes = [{ name: "app", path: "/", upstream: "app" }];
    const { check, doctor, serve } = await warnings(await sound({ upstreams, routes }));
    expect(check).toEqual(["upstreams.app: weights have no effect with balance: first"]);
    expect(doctor).toEqual(check);
    expect(serve).toEqual([expect.stringContaining("weights have no effect")]);
  });

  it.each<[string, (at: (name: string) => string) => Promise<unknown>, string, RegExp]>([
    [
      "signing keys that others can read",
      (at) => chmod(at("keys/one.pem"), 0o644),
      "keys/one.pem",
      /can be read by other users/,
    ],
    [
      "keys of assertions that others can read",
      (at) => chmod(at("own/one.pem"), 0o644),
      "own/one.pem",
      /can be read by other users/,
    ],
    [
      "users that others can change",
      (at) => chmod(at("users.yaml"), 0o666),
      "users.yaml",
      /can be changed by every user/,
    ],
    [
      "users in a directory that others can write to",
      (at) => chmod(at("."), 0o777),
      "users.yaml",
      /can be replaced: every user can write to its directory/,
    ],
    [
      "a file without users",
      (at) => writeFile(at("users.yaml"), "users: {}\n"),
      "users.yaml",
      /contains no users/,
    ],
  ])("%s", async (_what, spoil, file, message) => {
    const directory = await sound();
    await spoil((name) => join(directory, name));
    const { check, doctor, serve } = await warnings(directory);
    expect(check).toEqual([expect.stringMatching(message)]);
    expect(check[0]).toContain(join(directory, file));
    expect(doctor).toEqual(check);
    expect(serve).toEqual([expect.stringMatching(message)]);
    expect(serve[0]).toContain(join(directory, file));
  });

  it("no possible callers, routes that leave a gap, and monitor mode", async () => {
    const routes = [
      { name: "home", path: "/", auth: "none", upstream: "app" },
      { name: "admin", path: "/admin", methods: ["GET"], upstream: "app" },
      { name: "watched", path: "/1", mode: "monitor", upstream: "app" },
    ];
    const { check, doctor, serve } = await warnings(await sound({ users: [], routes }), served);
    const told = [
      expect.stringMatching(/no users and no trusted issuers/),
      expect.stringMatching(/^admin: HEAD, POST, .* is public through the route home/),
      expect.stringMatching(/^admin: \/ADMIN is public/),
      expect.stringMatching(/^watched: monitor mode/),
    ];
    expect(check).toEqual(told);
    expect(doctor).toEqual(told);
    expect(serve).toHaveLength(4);
    for (const part of ["no users", "admin: HEAD", "admin: /ADMIN", "watched"]) {
      expect(serve.filter((line) => line.includes(part))).toHaveLength(1);
    }
  });
});

describe("refused by check and serve", () => {
  it.each<[string, (at: (name: string) => string) => Promise<unknown>, RegExp]>([
    [
      "a key directory that every user can write to",
      (at) => chmod(at("keys"), 0o777),
      /keys: every user of this machine can add keys/,
    ],
    [
      "the same with the sticky bit, which does not prevent adding a key",
      (at) => chmod(at("keys"), 0o1777),
      /keys: every user of this machine can add keys/,
    ],
    [
      "users with a key directory without a key that can sign",
      async (at) => {
        await writeFile(at("keys/one.pem"), PUBLIC);
      },
      /keys: no key here can sign ES256[^]*add a private key, or leave out users/,
    ],
    [
      "a directory with keys of assertions that every user can write to",
      (at) => chmod(at("own"), 0o777),
      /own: every user of this machine can add keys/,
    ],
    [
      "one that contains a key of tokens",
      (at) => writeFile(at("own/two.pem"), PRIVATE, { mode: 0o600 }),
      /own\/two\.pem: this key is in tokens\.keys, too: assertions need their own keys/,
    ],
    [
      "one without a key that can sign",
      (at) => writeFile(at("own/one.pem"), PUBLIC),
      /own: no key here can sign ES256[^]*add a private key/,
    ],
    [
      "an empty key directory",
      (at) => rm(at("keys/one.pem")),
      /this directory holds no keys[^]*sallyport keys generate/,
    ],
  ])("%s", async (_what, spoil, message) => {
    const directory = await sound();
    await spoil((name) => join(directory, name));
    const config = ["--config", join(directory, "config.yaml")];
    for (const name of ["check", "serve"]) {
      const { code, err } = await command([name, ...config]);
      expect([name, code]).toEqual([name, 78]);
      expect(err).toMatch(message);
    }
  });

  it("not refused: public keys alone, if tokens are issued elsewhere", async () => {
    const directory = await sound({ users: [] });
    await writeFile(join(directory, "keys/one.pem"), PUBLIC);
    const { code } = await command(["check", "--config", join(directory, "config.yaml")]);
    expect(code).toBe(0);
  });
});

it.skipIf(process.getuid?.() !== 0)(
  "an unreadable file is reported with its mode, its owner and the process's user (skipped unless run as root)",
  async () => {
    const directory = await sound();
    await chmod(directory, 0o755);
    await chmod(join(directory, "config.yaml"), 0o644);
    await chmod(join(directory, "users.yaml"), 0o640);
    const { stderr, status } = spawnSync(
      process.execPath,
      [entry(), "check", "--config", join(directory, "config.yaml")],
      { uid: 65_532, gid: 65_532, encoding: "utf8", env: {} },
    );
    expect(status).toBe(78);
    expect(stderr).toMatch(
      /users\[0\]\.path names a file that cannot be read: \/\S+\/users\.yaml \(mode 0640, owner 0:0; this process runs as 65532:65532\)/,
    );
    // The directory of keys is 0700.
    expect(stderr).toMatch(
      /tokens\.keys names a directory that cannot be read: \/\S+\/keys \(mode 0700/,
    );
    expect(await readFile(join(directory, "users.yaml"), "utf8")).toBe(USERS);
  },
);

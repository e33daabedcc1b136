/** A full disk: a separate file system of a few pages with no space left. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { deployment } from "../cli/deployment.ts";
import { cheapHash } from "../credentials/fixture.ts";
import { ask, askLogin } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { entry } from "../support/entry.ts";
import { signingPair, signToken, startKeySetServer } from "../support/foreign-keys.ts";
import { startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";
import { smallDisk } from "./small-disk.ts";

interface LogLine {
  readonly time: string;
  readonly msg: string;
  readonly path?: string;
  readonly port?: number;
  readonly dropped?: number;
}

/** Starts Sallyport with its log in a file. */
async function loggingTo(log: string) {
  const { flags } = await deployment();
  const settings = ["server.listen=127.0.0.1:0", "admin.listen=127.0.0.1:0", "log.format=json"];
  const more = [
    ...settings,
    "tokens.trusted=[]",
    'routes=[{ name: app, path: "/", upstream: app }]',
  ];
  const args = [...flags, ...more.flatMap((setting) => ["--set", setting])];
  const output = openSync(log, "a");
  const child = spawn(process.execPath, [entry(), "serve", ...args], {
    env: { ...process.env, SALLYPORT_ENTRY: undefined },
    stdio: ["ignore", output, "inherit"],
  });
  closeSync(output);
  const portOf = (message: string): number =>
    Number(
      new RegExp(`"port":(\\d+)[^\n]*"msg":"${message}"`).exec(readFileSync(log, "utf8"))?.[1],
    );
  await until(() => portOf("admin listening") > 0, 25_000);
  return {
    port: portOf("listening"),
    adminPort: portOf("admin listening"),
    ca: (await testCertificates()).ca,
    async [Symbol.asyncDispose](): Promise<void> {
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}

const DROPPED = "sallyport_log_lines_dropped_total";
const possible = await smallDisk();
await possible?.[Symbol.asyncDispose]();

describe.skipIf(possible === undefined)("on a full disk", () => {
  const startDisk = async () => {
    const disk = await smallDisk();
    if (disk === undefined) throw new Error("no disk");
    onTestFinished(() => disk[Symbol.asyncDispose]());
    return disk;
  };
  const hasLogged = (gate: { log(): readonly object[] }, message: string): boolean =>
    JSON.stringify(gate.log()).includes(message);

  test("revocations take effect, are reported as not persisted, and are written once there is space", async () => {
    const disk = await startDisk();
    await using backend = await startEchoBackend();
    const journal = join(disk.path, "revoked.journal");
    await using gate = await startSallyport({
      target: backend.url,
      config: { tokens: { revocation: { journal, logout: true } } },
    });
    const revoke = (jti: string) =>
      ask({ port: gate.adminPort }, `/-/revoke?jti=${jti}`, { method: "POST" });
    expect((await revoke("first")).status).toBe(200);
    disk.fill();
    // One more line still fits in the first page.
    const many = Array.from({ length: 200 }, (_, at) => `${"x".repeat(60)}-${at}`);
    for (const jti of many) expect((await revoke(jti)).status).toBe(200);
    await until(() => hasLogged(gate, "revocations cannot be written"));
    expect(hasLogged(gate, '"reason":"ENOSPC"')).toBe(true);
    expect((await scrape(gate)).value("sallyport_revocation_journal_writable")).toBe(0);
    const { token } = gate;
    expect((await ask(gate, "/api/logout", { token, method: "POST" })).status).toBe(200);
    expect((await ask(gate, "/x", { token })).status).toBe(401);
    const fresh = await gate.login("alice", "correct horse battery staple");
    expect((await ask(gate, "/x", { token: fresh })).status).toBe(200);
    disk.free();
    await until(async () => {
      const text = readFileSync(journal, "utf8");
      return ["first", ...many].every((jti) => text.includes(jti));
    }, 20_000);
    expect((await scrape(gate)).value("sallyport_revocation_journal_writable")).toBe(1);
  });

  test("the log loses whole lines, says so once a second at most, and goes on once there is space", async () => {
    const disk = await startDisk();
    const log = join(disk.path, "log");
    const lines = (): LogLine[] =>
      readFileSync(log, "utf8")
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line));
    await using gate = await loggingTo(log);
    const asked = Array.from({ length: 40 }, (_, at) => `/while-full/${at}`);
    disk.fill();
    for (const path of asked) await ask(gate, path);
    await until(async () => ((await scrape(gate)).value(DROPPED) ?? 0) > 0);
    disk.free();
    await ask(gate, "/after");
    const has = (words: string): boolean => readFileSync(log, "utf8").includes(words);
    await until(() => has("/after") && has("log lines were dropped"));
    const reports = lines().filter(({ msg }) => msg === "log lines were dropped");
    const times = reports.map(({ time }) => Date.parse(time));
    expect(times.every((time, at) => at === 0 || time - (times[at - 1] ?? 0) >= 950)).toBe(true);
    const written = lines().filter(({ path = "" }) => asked.includes(path)).length;
    const dropped = reports.reduce((sum, each) => sum + (each.dropped ?? 0), 0);
    expect(written + dropped).toBe(asked.length);
  });

  test("keys of a trusted issuer are used, and a failure to write their copy is logged", async () => {
    const disk = await startDisk();
    disk.fill();
    await using backend = await startEchoBackend();
    const pair = signingPair("known");
    await using provider = await startKeySetServer(() => [pair.jwk]);
    const issuer = "https://id.example.com";
    const jwks = { url: provider.url, cacheFile: join(disk.path, "keys.json") };
    await using gate = await startSallyport({
      target: backend.url,
      config: {
        tokens: { trusted: [{ issuer, audience: "orders", algorithms: ["ES256"], jwks }] },
      },
    });
    await until(() =>
      hasLogged(gate, "the copy of the keys of a trusted issuer cannot be written"),
    );
    expect(hasLogged(gate, '"reason":"ENOSPC"')).toBe(true);
    const exp = Math.floor(Date.now() / 1000) + 600;
    const claims = { iss: issuer, aud: "orders", sub: "zoe", jti: "1", exp };
    expect((await ask(gate, "/x", { token: await signToken(pair, claims) })).status).toBe(200);
  });

  test("users in SQLite can log in, since a login writes nothing", async () => {
    const disk = await startDisk();
    await using backend = await startEchoBackend();
    const path = join(disk.path, "users.db");
    const database = new DatabaseSync(path);
    database.exec("CREATE TABLE users (name TEXT PRIMARY KEY, password_hash)");
    database.prepare("INSERT INTO users VALUES (?, ?)").run("alice", cheapHash("apple"));
    database.close();
    disk.fill();
    const query = "SELECT password_hash FROM users WHERE name = $1";
    await using gate = await startSallyport({
      target: backend.url,
      config: {
        users: [
          { kind: "file", path: "users.yaml" },
          { kind: "sqlite", path, query: query.replace("name =", "'q' || name =") },
        ],
      },
      files: {
        "users.yaml": JSON.stringify({
          users: { alice: { password: cheapHash("correct horse battery staple") } },
        }),
      },
    });
    expect(await askLogin(gate, { username: "qalice", password: "apple" })).toMatchObject({
      status: 200,
    });
    expect(await askLogin(gate, { username: "qalice", password: "wrong" })).toMatchObject({
      status: 401,
    });
    expect(gate.log().filter((line) => line["level"] === "error")).toEqual([]);
  });
});

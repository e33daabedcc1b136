/** What the doctor reports about real user stores: one line and a hint for each possible fault. */
import { createServer } from "node:https";
import { once } from "node:events";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { command } from "../cli/command.ts";
import { startLoginServer } from "../credentials/login-server.ts";
import { testCertificates } from "../support/certificates.ts";
import { closedPort } from "../support/dead-ends.ts";
import { listeningPort } from "../support/listening-port.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { postgresMissing, QUERY, startPostgres, type PostgresServer } from "./postgres-server.ts";
import { startRelay } from "./relay.ts";
import { SETTINGS, slapdMissing, startSlapd, type SlapdServer } from "./slapd-server.ts";

const ALICE = { name: "alice", password: "apple", groups: ["sales"] };

interface Report {
  readonly code: number;
  readonly findings: readonly {
    readonly result: string;
    readonly message: string;
    readonly hint?: string;
  }[];
}

/** Runs the doctor. @returns its findings about the store, or about the configuration if that is unusable. */
async function doctor(store: object, flags: readonly string[] = []): Promise<Report> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  const { ca } = await testCertificates();
  await directory.write("ca.crt", ca);
  const config = {
    server: { listen: "127.0.0.1:0", tls: "off" },
    admin: { listen: "127.0.0.1:0" },
    upstreams: { app: { targets: ["http://127.0.0.1:9"] } },
    users: [store],
  };
  const file = await directory.write("config.yaml", JSON.stringify(config));
  const { code, out, err } = await command([
    ...["doctor", "--config", file, "--format", "json", ...flags],
  ]);
  expect(out + err).not.toMatch(/hunter22|of-the-test/);
  const { groups } = JSON.parse(out) as {
    readonly groups: readonly { readonly name: string; readonly findings: Report["findings"] }[];
  };
  // Nothing else is checked when the configuration is unusable.
  const wanted = code === 78 ? "configuration" : "user stores";
  return { code, findings: groups.find(({ name }) => name === wanted)?.findings ?? [] };
}

/** A fault: a change to the settings, and the one finding that it leads to. */
interface Fault {
  readonly change: object;
  readonly says: RegExp;
  readonly hint: RegExp;
  /** `bad` by default. */
  readonly result?: "warning";
}

async function expectReported(
  sound: object,
  faults: Readonly<Record<string, Fault>>,
): Promise<void> {
  for (const [name, { change, says, hint, result = "bad" }] of Object.entries(faults)) {
    const { findings } = await doctor({ ...sound, ...change });
    const [problem, another] = findings.filter((each) => each.result !== "good");
    expect({ name, problem, another }).toEqual({
      name,
      another: undefined,
      problem: {
        result,
        message: expect.stringMatching(says) as string,
        hint: expect.stringMatching(hint) as string,
      },
    });
    expect(problem?.message).not.toContain("\n");
  }
}

/** Expects a finding while the server hangs, and one while it is slow. */
async function expectTime(
  server: Pick<PostgresServer, "port" | "signal">,
  storeAt: (port: number) => object,
): Promise<void> {
  server.signal("SIGSTOP");
  const hung = await doctor(storeAt(server.port), ["--timeout", "700ms"]).finally(() =>
    server.signal("SIGCONT"),
  );
  expect(hung.findings).toMatchObject([
    { result: "bad", message: expect.stringMatching(/time/i) as string },
  ]);
  expect(hung.findings[0]?.hint).toContain("slow");
  await using relay = await startRelay(server.port);
  relay.delayMs = 300;
  const slow = await doctor(storeAt(relay.port), ["--timeout", "20s"]);
  expect(slow.findings).toMatchObject([
    { result: "warning", message: expect.stringMatching(/answers in \d{3,} ms/) as string },
  ]);
  expect(slow.findings[0]?.hint).toContain("503");
}

describe.skipIf(slapdMissing !== undefined)(`with OpenLDAP ${slapdMissing ?? ""}`, () => {
  let server: SlapdServer;
  beforeAll(async () => {
    server = await startSlapd();
    await server.hold([ALICE]);
  }, 60_000);
  afterAll(() => server[Symbol.asyncDispose]());

  const sound = () => ({ kind: "ldap", url: server.secureUrl, caFile: "ca.crt", ...SETTINGS });

  test("reports a working store, and each fault", { timeout: 60_000 }, async () => {
    const { findings } = await doctor(sound());
    expect(findings).toEqual([
      { result: "good", message: expect.stringMatching(/^ldap: answers in \d+ ms$/) as string },
    ]);
    const { bind, search, groups } = SETTINGS;
    await expectReported(sound(), {
      "a wrong password": {
        change: { bind: { ...bind, password: "hunter22" } },
        says: /refuses the credentials of `bind`$/,
        hint: /bind\.password/,
      },
      "a wrong name": {
        change: { bind: { dn: "cn=nobody,dc=example,dc=com", password: "hunter22" } },
        says: /refuses the credentials of `bind`$/,
        hint: /bind\.dn/,
      },
      "an unknown authority": {
        change: { caFile: undefined },
        says: /SELF_SIGNED|VERIFY|ISSUER/,
        hint: /caFile/,
      },
      "clear text where TLS is": {
        change: { url: server.secureUrl.replace("ldaps:", "ldap:"), startTls: false },
        says: /is unavailable/,
        hint: /./,
      },
      "TLS where clear text is": {
        change: { url: server.url.replace("ldap:", "ldaps:") },
        says: /is unavailable/,
        hint: /TLS/,
      },
      "a wrong base": {
        change: { search: { ...search, base: "ou=elsewhere,dc=example,dc=com" } },
        says: /there is no ou=elsewhere,dc=example,dc=com/,
        hint: /search\.base/,
      },
      "a missing attribute": {
        change: { search: { ...search, filter: "(sAMAccountName={username})" } },
        says: /no entry below search\.base has the attribute sAMAccountName/,
        hint: /another name/,
        result: "warning",
      },
      "a wrong base of groups": {
        change: { groups: { ...groups, base: "ou=elsewhere,dc=example,dc=com" } },
        says: /there is no ou=elsewhere/,
        hint: /groups\.base/,
        result: "warning",
      },
      "a missing group attribute": {
        change: { groups: { ...groups, filter: "(uniqueMember={dn})" } },
        says: /groups\.base has the attribute uniqueMember/,
        hint: /./,
        result: "warning",
      },
      "an unreachable server": {
        change: { url: `ldaps://127.0.0.1:${await closedPort()}` },
        says: /ECONNREFUSED/,
        hint: /is the server running/,
      },
      "an unknown host": {
        change: { url: "ldaps://directory.invalid" },
        says: /ENOTFOUND|EAI_AGAIN/,
        hint: /DNS/,
      },
    });
  });

  test("reports a server that hangs, and one that is slow", { timeout: 60_000 }, async () => {
    await expectTime(server, (port) => ({
      ...sound(),
      url: `ldap://127.0.0.1:${port}`,
      startTls: false,
      timeout: "1s",
    }));
  });
});

describe.skipIf(postgresMissing !== undefined)(`with PostgreSQL ${postgresMissing ?? ""}`, () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
    await server.hold([ALICE]);
    // Fails the way a full disk does. It runs when the query is planned, since the doctor fetches no rows.
    await server.query(
      "CREATE FUNCTION full_disk(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '53100'; END $$",
    );
  }, 60_000);
  afterAll(() => server[Symbol.asyncDispose]());

  const sound = () => ({ kind: "postgres", url: server.url, query: QUERY, caFile: "ca.crt" });

  test("reports a working store, and each fault", { timeout: 60_000 }, async () => {
    const { findings } = await doctor(sound());
    expect(findings).toEqual([
      { result: "good", message: expect.stringMatching(/^postgres: answers in \d+ ms$/) as string },
    ]);
    const query = (text: string) => ({ query: text });
    await expectReported(sound(), {
      "a wrong password": {
        change: { url: server.url.replace("of-the-test", "hunter22") },
        says: /28P01/,
        hint: /password in `url`/,
      },
      "a wrong user": {
        change: { url: server.url.replace("sallyport:", "nobody:") },
        says: /28P01|28000/,
        hint: /user/,
      },
      "a missing database": {
        change: { url: server.url.replace(/postgres$/, "shop") },
        says: /3D000/,
        hint: /no such database/,
      },
      "an unknown authority": {
        change: { caFile: undefined },
        says: /SELF_SIGNED|VERIFY|ISSUER/,
        hint: /caFile/,
      },
      "a missing table": {
        change: query("SELECT hash AS password_hash FROM people WHERE name = $1"),
        says: /42P01/,
        hint: /table/,
      },
      "a missing column": {
        change: query("SELECT secret AS password_hash FROM users WHERE name = $1"),
        says: /42703/,
        hint: /column/,
      },
      "no column password_hash": {
        change: query("SELECT hash FROM users WHERE name = $1"),
        says: /returns no column password_hash/,
        hint: /docs\/users\.md/,
      },
      "no right to read": {
        change: query("SELECT rolpassword AS password_hash FROM pg_authid WHERE rolname = $1"),
        says: /42501/,
        hint: /GRANT/,
      },
      "no SQL": {
        change: query("SELEKT $1"),
        says: /42601/,
        hint: /psql/,
      },
      "a full disk": {
        change: query("SELECT full_disk('') AS password_hash FROM users WHERE name = $1"),
        says: /53100/,
        hint: /disk space/,
      },
      "an unreachable server": {
        change: { url: `postgres://u:hunter22@127.0.0.1:${await closedPort()}/d` },
        says: /ECONNREFUSED/,
        hint: /is the server running/,
      },
    });
  });

  test("reports a server that hangs, and one that is slow", { timeout: 60_000 }, async () => {
    await expectTime(server, (port) => ({
      ...sound(),
      url: server.url.replace(String(server.port), String(port)),
      timeout: "3s",
    }));
  });
});

test("reports the faults of SQLite", async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  const path = join(directory.path, "users.db");
  const database = new DatabaseSync(path);
  database.exec("CREATE TABLE users (name TEXT PRIMARY KEY, password_hash)");
  database.close();
  const query = "SELECT password_hash FROM users WHERE name = $1";
  const sound = { kind: "sqlite", path, query };
  expect((await doctor(sound)).findings).toMatchObject([
    { result: "good", message: expect.stringMatching(/^sqlite: answers in \d+ ms$/) as string },
  ]);
  await directory.write("text.db", "no database, and longer than a header of SQLite".repeat(10));
  const faults = {
    "no file": [{ path: join(directory.path, "none.db") }, /none\.db/],
    "no database": [
      { path: join(directory.path, "text.db") },
      /text\.db.*not a database|ERR_SQLITE/,
    ],
    "no table": [{ query: query.replace("users", "people") }, /no such table: people|ERR_SQLITE/],
    "no column": [
      { query: query.replace("password_hash", "secret AS password_hash") },
      /secret|ERR_SQLITE/,
    ],
    "no column password_hash": [
      { query: "SELECT name FROM users WHERE name = $1" },
      /password_hash/,
    ],
  } as const;
  for (const [name, [change, says]] of Object.entries(faults)) {
    const { code, findings } = await doctor({ ...sound, ...change });
    // A missing file is also reported with its position in the configuration.
    const ill = findings.filter(({ result }) => result === "bad").slice(-1);
    expect({ name, code, ill }).toEqual({
      name,
      code: 78,
      ill: [expect.objectContaining({ message: expect.stringMatching(says) as string })],
    });
  }
});

test("reports the faults of a login over HTTP", { timeout: 30_000 }, async () => {
  const login = await startLoginServer();
  onTestFinished(() => login[Symbol.asyncDispose]());
  const sound = { kind: "http", url: `${login.url}/json`, status: { unknown: [404] } };
  expect((await doctor(sound)).findings).toMatchObject([{ result: "good" }]);
  const { server: certificate } = await testCertificates();
  const secure = createServer(certificate, (_request, response) => response.writeHead(401).end());
  secure.listen(0, "127.0.0.1");
  await once(secure, "listening");
  onTestFinished(() => void secure.close());
  const secureUrl = `https://localhost:${listeningPort(secure)}/`;
  expect((await doctor({ ...sound, url: secureUrl, caFile: "ca.crt" })).findings).toMatchObject([
    { result: "good" },
  ]);
  const answering = async (status: number, hint: RegExp): Promise<void> => {
    login.instead = (_request, response) => response.writeHead(status, { location: "/" }).end();
    await expectReported(
      { ...sound, status: {} },
      {
        [`status ${status}`]: { change: {}, says: new RegExp(`status ${status}`), hint },
      },
    );
  };
  await answering(404, /path in `url`/);
  await answering(302, /redirects/);
  await answering(415, /format/);
  await answering(429, /exempt/);
  await answering(500, /`status` of the store/);
  login.instead = () => undefined;
  const { findings } = await doctor(sound, ["--timeout", "500ms"]);
  expect(findings).toMatchObject([
    { result: "bad", message: expect.stringContaining("in time") as string },
  ]);
  await expectReported(sound, {
    "an unknown authority": {
      change: { url: secureUrl },
      says: /SELF_SIGNED|VERIFY|ISSUER/,
      hint: /caFile/,
    },
    "an unreachable server": {
      change: { url: `http://127.0.0.1:${await closedPort()}/` },
      says: /ECONNREFUSED/,
      hint: /is the server running/,
    },
  });
});

/**
 * A revoked token that still opens doors. Someone logs out, or an operator revokes a stolen token; the thief
 * continues where no one looks: on a connection whose token is cached, in another thread, with another spelling of
 * the same token (in addition to an ECDSA signature (r, s), (r, n-s) is valid), after a restart, or because the
 * reloaded list is invalid. And who may revoke: no one with the token of another user, no web page, and no stranger
 * who reaches the admin port.
 */
import { randomUUID } from "node:crypto";
import { chmod, readFile, rename, rm, stat, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { command } from "../../cli/command.ts";
import { ask } from "../../support/ask.ts";
import { byKey, compact } from "../../support/compact-token.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { signingPair } from "../../support/foreign-keys.ts";
import { logLine } from "../../support/log-line.ts";
import { exchange, request } from "../../support/raw-client.ts";
import { ALICE, cheapHash, type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { claims, header, OWN, present, seconds } from "../../support/token-gate.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../../support/temporary-directory.ts";
import { until } from "../../support/until.ts";

const own = byKey(OWN.privateKey);
const FOREIGN = "https://id.example.com";
const foreign = signingPair("theirs");
const stranger = signingPair("theirs");

let backend: EchoBackend;
let keys: TemporaryDirectory;
let journals: TemporaryDirectory;
beforeAll(async () => {
  backend = await startEchoBackend();
  keys = await temporaryDirectory();
  journals = await temporaryDirectory();
  const pem = OWN.privateKey.export({ format: "pem", type: "pkcs8" });
  await chmod(await keys.write("own.pem", pem), 0o600);
});
afterAll(() => Promise.all([backend.close(), keys.close(), journals.close()]));

interface Start {
  readonly revocation?: object;
  readonly files?: Readonly<Record<string, string>>;
  readonly workers?: number;
  readonly admin?: object;
}

const start = ({ revocation = { logout: true }, files, workers = 2, admin = {} }: Start = {}) =>
  startSallyport({
    withoutToken: true,
    target: backend.url,
    files: { "theirs.json": JSON.stringify({ keys: [foreign.jwk] }), ...files },
    config: {
      // Each thread is asked on new connections, which cost three times as much with TLS.
      server: { tls: "off", workers },
      admin,
      tokens: {
        keys: keys.path,
        revocation,
        trusted: [
          {
            issuer: FOREIGN,
            audience: "sallyport",
            algorithms: ["ES256"],
            jwks: { file: "theirs.json" },
          },
        ],
      },
    },
  });

const tokenOf = (more: Readonly<Record<string, unknown>> = {}): string =>
  compact(header(), claims({ jti: randomUUID(), ...more }), own);
const foreignToken = (more: Readonly<Record<string, unknown>> = {}, pair = foreign): string =>
  compact(
    { alg: "ES256", kid: pair.kid },
    claims({ iss: FOREIGN, ...more }),
    byKey(pair.privateKey),
  );

/** Returns (r, n-s): as valid as the original signature, with other bytes. */
function twin(token: string): string {
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
  const [head = "", payload = "", signature = ""] = token.split(".");
  const bytes = Buffer.from(signature, "base64url");
  const s = order - BigInt(`0x${bytes.subarray(32).toString("hex")}`);
  const other = Buffer.concat([
    bytes.subarray(0, 32),
    Buffer.from(s.toString(16).padStart(64, "0"), "hex"),
  ]);
  return `${head}.${payload}.${other.toString("base64url")}`;
}

async function logout(gate: Sallyport, token: string, method = "POST") {
  const lines = [`${method} /api/logout HTTP/1.1`, "Host: localhost"];
  const bytes = request([...lines, `Authorization: Bearer ${token}`, "Content-Length: 0"]);
  return (await exchange(gate, bytes)).last;
}

const statusOf = async (gate: Sallyport, token: string): Promise<number> =>
  (await present(gate, token)).status;

/** Whether every thread refuses a token: each connection is accepted by one of them. */
async function refusedEverywhere(gate: Sallyport, token: string): Promise<boolean> {
  const statuses = await Promise.all(Array.from({ length: 12 }, () => statusOf(gate, token)));
  return statuses.every((status) => status === 401);
}

const revoke = (gate: Sallyport, query: string, headers: Record<string, string> = {}) =>
  ask({ port: gate.adminPort }, `/-/revoke${query}`, { method: "POST", headers });

async function replace(gate: Sallyport, name: string, text: string): Promise<void> {
  const file = join(gate.directory, name);
  await writeFile(`${file}.next`, text);
  await rename(`${file}.next`, file);
}

/** For actions that have no other effect than revoked tokens. */
let gate: Sallyport;
beforeAll(async () => (gate = await start()), 30_000);
afterAll(() => gate.close());

const journalLine = (name: string, until = Math.ceil(Date.now() / 1000 + 600) * 1000): string =>
  `${JSON.stringify({ kind: "token", name, until })}\n`;
const usersFile = (users: Readonly<Record<string, object>>): string => {
  const password = cheapHash(ALICE.password);
  const all = Object.entries(users).map(([name, more]) => [name, { password, ...more }]);
  return JSON.stringify({ users: Object.fromEntries(all) });
};

/** Everything is off in it that can be, nobody may use its admin port, and its journal ends with an incomplete line. */
let quiet: Sallyport;
const incomplete = { file: "", whole: journalLine("the first") };
beforeAll(async () => {
  const { whole } = incomplete;
  incomplete.file = await journals.write("incomplete", whole + journalLine("the second"));
  await truncate(incomplete.file, whole.length + 20);
  quiet = await start({
    revocation: { users: false, journal: incomplete.file },
    files: { "users.yaml": usersFile({ alice: {}, bob: {} }) },
    workers: 1,
    admin: { allow: ["192.0.2.1"] },
  });
}, 30_000);
afterAll(() => quiet.close());

describe("a token that logged out", () => {
  it("is refused by every thread at once, cached or not, in any spelling", async () => {
    const token = tokenOf();
    for (let round = 0; round < 12; round += 1) expect(await statusOf(gate, token)).toBe(200);
    const answer = await logout(gate, token);
    expect([answer.status, JSON.parse(answer.body)]).toEqual([
      200,
      { id: expect.any(Number), message: "Logged out", success: true },
    ]);
    await until(() => refusedEverywhere(gate, token), 1_000);
    expect(await statusOf(gate, twin(token))).toBe(401);
    await logLine(gate, { status: 401, reason: "revoked" });
    const { body } = await ask({ port: gate.adminPort }, "/metrics");
    expect(body).toMatch(/auth_decisions_total\{[^}]*reason="revoked"[^}]*\} [1-9]/);
    expect(await statusOf(gate, tokenOf())).toBe(200);
  }, 30_000);

  it("is refused on the connection that has just sent it", async () => {
    const token = tokenOf();
    const get = request(["GET /x HTTP/1.1", "Host: a", `Authorization: Bearer ${token}`]);
    let sent = false;
    const { responses } = await exchange(gate, get + get, {
      responses: 3,
      onBytes(raw, write) {
        if (sent || raw.split("HTTP/1.1 200").length < 3) return;
        sent = true;
        void logout(gate, token).then(async () => {
          await until(() => refusedEverywhere(gate, token), 1_000);
          write(get);
        });
      },
    });
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 401]);
  }, 30_000);

  it("may log out again, with POST or DELETE, to the same effect", async () => {
    const token = tokenOf();
    for (const method of ["POST", "DELETE", "POST"]) {
      expect((await logout(gate, token, method)).status).toBe(200);
    }
    expect((await logout(gate, token, "GET")).status).toBe(405);
    // Only with a revoked token: one with an invalid signature gets nothing.
    const forged = compact(header(), claims(), byKey(stranger.privateKey));
    expect((await logout(gate, forged)).status).toBe(401);
  }, 30_000);

  it("is refused after a restart, and others are not", async () => {
    await using place = await temporaryDirectory();
    const revocation = { logout: true, journal: join(place.path, "revoked.journal") };
    const [gone, stays] = [tokenOf(), tokenOf()];
    {
      await using gate = await start({ revocation });
      expect((await logout(gate, gone)).status).toBe(200);
      expect((await stat(revocation.journal)).mode & 0o777).toBe(0o600);
      process.kill(gate.pid, "SIGKILL");
      await gate.exit;
    }
    await using gate = await start({ revocation });
    expect(await refusedEverywhere(gate, gone)).toBe(true);
    expect(await statusOf(gate, stays)).toBe(200);
  }, 60_000);
});

describe("logging out", () => {
  it("is only for our own tokens: those of a trusted issuer are refused, and end nothing", async () => {
    const jti = randomUUID();
    const ours = tokenOf({ jti });
    expect((await logout(gate, foreignToken({ jti }))).status).toBe(403);
    expect((await logout(gate, foreignToken({ jti }, stranger))).status).toBe(401);
    expect(await statusOf(gate, ours)).toBe(200);
    expect(await statusOf(gate, foreignToken({ jti }))).toBe(200);
  }, 30_000);

  it("is not possible for a web page", async () => {
    const token = tokenOf();
    const { last } = await exchange(
      gate,
      request(
        [
          ...["POST /api/logout HTTP/1.1", "Host: localhost", "Origin: https://evil.example"],
          ...["Sec-Fetch-Site: cross-site", "Content-Type: application/x-www-form-urlencoded"],
          ...[`Cookie: session=${token}; access_token=${token}`, "Content-Length: 7"],
        ],
        "token=x",
      ),
    );
    expect(last.status).toBe(401);
    expect(await statusOf(gate, token)).toBe(200);
  }, 30_000);

  it("is left to the backend if it is not enabled", async () => {
    const token = tokenOf();
    const answer = await logout(quiet, token);
    expect([answer.status, answer.body.includes("Logged out")]).toEqual([200, false]);
    expect(await statusOf(quiet, token)).toBe(200);
  }, 30_000);
});

describe("an operator", () => {
  it("revokes a token, a jti, a subject, and everything before a time", async () => {
    const jti = randomUUID();
    const [whole, byId] = [tokenOf(), tokenOf({ jti })];
    const [alice, later, bob] = [
      tokenOf({ sub: "alice" }),
      tokenOf({ sub: "alice", iat: seconds() + 5 }),
      tokenOf(),
    ];
    const theirs = foreignToken({ sub: "alice" });
    for (const token of [whole, byId, alice, later, bob, theirs]) {
      expect(await statusOf(gate, token)).toBe(200);
    }
    const { status, body } = await revoke(gate, "", { authorization: `Bearer ${whole}` });
    expect([status, JSON.parse(body)]).toEqual([200, expect.objectContaining({ kept: false })]);
    await revoke(gate, `?jti=${jti}`);
    await revoke(gate, "?subject=alice&issuer=sallyport");
    for (const token of [whole, byId, alice]) {
      await until(() => refusedEverywhere(gate, token), 1_000);
    }
    expect(await statusOf(gate, later)).toBe(200);
    expect(await statusOf(gate, theirs)).toBe(200);
    await revoke(gate, "?subject=alice");
    await until(() => refusedEverywhere(gate, theirs), 1_000);
    expect(await statusOf(gate, bob)).toBe(200);
    const old = tokenOf({ iat: seconds() - 7_200 });
    expect(await statusOf(gate, old)).toBe(200);
    await revoke(gate, `?before=${new Date(Date.now() - 3_600_000).toISOString()}`);
    await until(() => refusedEverywhere(gate, old), 1_000);
    expect(await statusOf(gate, bob)).toBe(200);
  }, 30_000);

  it("gets an error for invalid requests, and then nothing is revoked", async () => {
    const token = tokenOf();
    const bad = {
      "": "name a token, a jti, a subject, or a time with before",
      "?jti=": "a jti must be text without control characters",
      "?subject=a&subject=": "a subject must be text without control characters",
      "?jti=a&subject=b": "name a token, a jti or a subject, and only one of them",
      "?before=yesterday": "before must be a time with its zone, such as 2026-11-22T10:00:00Z",
      "?jti=a&before=2026-11-22T10:00:00Z": "before needs subject, or must be the only parameter",
      "?issuer=x": "issuer needs subject",
      "?jti=a&issuer=x": "issuer needs subject",
      "?subject=a&issuer=": "an issuer must be text without control characters",
      "?subject=a&issuer=x&issuer=y": "issuer and before can be named once",
      "?before=2026-11-22T10:00:00Z&before=2026-11-23T10:00:00Z":
        "issuer and before can be named once",
      "?all=yes": "the query may hold jti, subject, issuer, before and nothing else",
    };
    for (const [query, why] of Object.entries(bad)) {
      const { status, body } = await revoke(gate, query);
      const message = `Nothing was revoked: ${why}`;
      expect([status, JSON.parse(body).message], query).toEqual([400, message]);
    }
    const forged = compact(header(), claims({ jti: "x" }), byKey(stranger.privateKey));
    expect((await revoke(gate, "", { authorization: `Bearer ${forged}` })).status).toBe(400);
    expect(await statusOf(gate, token)).toBe(200);
  }, 30_000);

  it("may name several subjects, and all of them are revoked", async () => {
    const tokens = ["erin", "frank"].map((sub) => tokenOf({ sub }));
    for (const token of tokens) expect(await statusOf(gate, token)).toBe(200);
    expect((await revoke(gate, "?subject=erin&subject=frank")).status).toBe(200);
    for (const token of tokens) await until(() => refusedEverywhere(gate, token), 1_000);
  }, 30_000);

  it("uses the command line", async () => {
    const [one, two] = [tokenOf(), tokenOf({ sub: "carol" })];
    const url = ["--url", `http://127.0.0.1:${gate.adminPort}`];
    const said = await command(["token", "revoke", "--token", one, ...url]);
    expect([said.code, said.out]).toEqual([0, expect.stringContaining("Revoked")]);
    expect((await command(["token", "revoke", "--subject", "carol", ...url])).code).toBe(0);
    for (const token of [one, two]) await until(() => refusedEverywhere(gate, token), 1_000);
    expect((await command(["token", "revoke", "--before", "now", ...url])).code).toBe(1);
    const both = ["grace", "heidi"].map((sub) => tokenOf({ sub }));
    const named = ["--subject", "grace", "--subject", "heidi"];
    expect((await command(["token", "revoke", ...named, ...url])).code).toBe(0);
    for (const token of both) await until(() => refusedEverywhere(gate, token), 1_000);
    const issuers = ["--issuer", "sallyport", "--issuer", "other"];
    const twice = await command(["token", "revoke", "--subject", "judy", ...issuers, ...url]);
    expect([twice.code, twice.err]).toEqual([1, expect.stringMatching(/can be named once/)]);
  }, 30_000);

  it("must be on the machine: no one else can revoke, and no web page", async () => {
    const token = tokenOf();
    const query = `?before=${new Date(Date.now() + 60_000).toISOString()}`;
    expect((await revoke(quiet, query)).status).toBe(403);
    const origin = { origin: "https://evil.example" };
    expect((await revoke(gate, query, origin)).status).toBe(403);
    expect(await statusOf(quiet, token)).toBe(200);
    expect(await statusOf(gate, tokenOf())).toBe(200);
  }, 30_000);
});

describe("the revocation file", () => {
  const files = { "revoked.yaml": "jti: []\n" };
  const revocation = { file: "revoked.yaml" };

  const list = (gate: Sallyport, text: string): Promise<void> =>
    replace(gate, "revoked.yaml", text);

  it("is watched; an invalid one changes nothing; removed entries are valid again", async () => {
    await using gate = await start({ files, revocation });
    const jti = randomUUID();
    const [token, alice] = [tokenOf({ jti }), tokenOf({ sub: "alice" })];
    expect(await statusOf(gate, token)).toBe(200);
    await list(
      gate,
      `jti: [${JSON.stringify(jti)}]\nsubjects: { alice: "${new Date().toISOString()}" }`,
    );
    await until(() => refusedEverywhere(gate, token));
    expect(await refusedEverywhere(gate, alice)).toBe(true);
    await list(gate, `jti: [${JSON.stringify(jti)}\nsubjekts: 3`);
    await logLine(gate, { file: join(gate.directory, "revoked.yaml"), level: "error" });
    expect(await refusedEverywhere(gate, token)).toBe(true);
    await rm(join(gate.directory, "revoked.yaml"));
    expect(await refusedEverywhere(gate, token)).toBe(true);
    await list(gate, "");
    await until(async () => (await statusOf(gate, token)) === 200);
  }, 60_000);
});

describe("the journal", () => {
  it("ignores an incomplete line", async () => {
    expect(await statusOf(quiet, tokenOf({ jti: "the first" }))).toBe(401);
    expect(await statusOf(quiet, tokenOf({ jti: "the second" }))).toBe(200);
    await logLine(quiet, { file: incomplete.file, level: "warn" });
    expect(await readFile(incomplete.file, "utf8")).toBe(incomplete.whole);
  }, 30_000);

  it.each([
    [
      "corrupt",
      (file: string) =>
        writeFile(file, `${journalLine("a")}{"kind":"to\0ken"}\n${journalLine("b")}`),
    ],
    [
      "of another kind",
      (file: string) => writeFile(file, '{"kind":"nobody","name":"","until":1}\n'),
    ],
    ["a link", (file: string) => symlink("/etc/passwd", file)],
    ["huge", async (file: string) => (await writeFile(file, ""), truncate(file, 2 ** 27))],
  ])(
    "that is %s prevents the start",
    async (_what, spoil) => {
      await using place = await temporaryDirectory();
      const journal = join(place.path, "journal");
      await spoil(journal);
      const config = {
        server: { listen: "127.0.0.1:0", tls: "off" },
        admin: "off",
        tokens: { keys: keys.path, revocation: { journal } },
        upstreams: { app: { targets: [backend.url] } },
      };
      const file = await place.write("config.yaml", JSON.stringify(config));
      const { code, err } = await command(["serve", "--config", file]);
      expect(code).toBe(78);
      expect(err).toMatch(/journal|no revocation/);
    },
    30_000,
  );

  it("is written again after it was removed, and a link in its place is not followed", async () => {
    await using place = await temporaryDirectory();
    const revocation = { logout: true, journal: join(place.path, "journal") };
    const victim = await place.write("victim", "precious");
    await using gate = await start({ revocation });
    const first = randomUUID();
    await logout(gate, tokenOf({ jti: first }));
    await rm(revocation.journal);
    await symlink(victim, revocation.journal);
    const second = randomUUID();
    expect((await logout(gate, tokenOf({ jti: second }))).status).toBe(200);
    expect(await readFile(victim, "utf8")).toBe("precious");
    const kept = await readFile(revocation.journal, "utf8");
    expect([kept.includes(first), kept.includes(second)]).toEqual([true, true]);
  }, 30_000);
});

describe("a user who is removed or disabled", () => {
  it("loses the tokens issued here, and no one else does", async () => {
    await using place = await temporaryDirectory();
    const revocation = { journal: join(place.path, "journal") };
    const disabled = { disabled: true };
    const files = { "users.yaml": usersFile({ alice: {}, bob: {}, carol: {}, dave: disabled }) };
    await using gate = await start({ revocation, files });
    const of = (sub: string) => tokenOf({ sub });
    const [bob, carol, dave] = [of("bob"), of("carol"), of("dave")];
    expect(await statusOf(gate, dave)).toBe(401);
    expect([await statusOf(gate, bob), await statusOf(gate, carol)]).toEqual([200, 200]);
    await replace(gate, "users.yaml", usersFile({ alice: {}, bob: disabled }));
    for (const token of [bob, carol]) await until(() => refusedEverywhere(gate, token));
    expect(await statusOf(gate, of("alice"))).toBe(200);
    expect(await statusOf(gate, foreignToken({ sub: "bob" }))).toBe(200);
    await replace(gate, "users.yaml", usersFile({ alice: {}, bob: {} }));
    await logLine(gate, { msg: "the users file was reloaded", users: 2 });
    expect(await statusOf(gate, bob)).toBe(401);
    await until(async () => (await readFile(revocation.journal, "utf8")).includes('"carol"'));
  }, 60_000);

  it("keeps them if that is switched off", async () => {
    const bob = tokenOf({ sub: "bob" });
    await replace(quiet, "users.yaml", usersFile({ alice: {} }));
    await logLine(quiet, { msg: "the users file was reloaded", users: 1 });
    expect(await statusOf(quiet, bob)).toBe(200);
  }, 30_000);
});

/**
 * The attack: a decision is asked for before something is taken away, and answered after it. A login is under way while
 * its user is removed; a server is asked about a token or its caller while the token is revoked, or while its issuer
 * leaves the configuration. What was read before the slow step no longer holds after it (time of check to time of use,
 * CWE-367). The servers here answer when the test says so.
 */
import { argon2Sync, randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Answer, ask, askLogin, fieldsOf } from "../../support/ask.ts";
import { editConfiguration, replaceFile } from "../../support/edits.ts";
import { signingPair, signToken } from "../../support/foreign-keys.ts";
import { type RawBackend, startRawBackend } from "../../support/raw-backend.ts";
import {
  type RemoteReply,
  type RemoteServer,
  startRemoteServer,
} from "../../support/remote-server.ts";
import { ALICE, cheapHash, type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

const ISSUER = "https://issuer.example.com";
const pair = signingPair("first");
const now = (): number => Math.floor(Date.now() / 1000);
const foreignToken = (more: object = {}): Promise<string> =>
  signToken(pair, { iss: ISSUER, aud: "orders", sub: "zoe", exp: now() + 600, ...more });

const LIMITED = ["subject", "address"] as const;

/** A server whose questions wait until the test answers them, in order. */
interface HeldServer {
  readonly server: RemoteServer;
  /** Resolves with a function that answers the next question. */
  next(): Promise<(reply: RemoteReply) => void>;
  /** Answers every question until a request has its answer, and returns that. */
  through(asked: Promise<Answer>, reply: RemoteReply): Promise<Answer>;
}

async function startHeld(): Promise<HeldServer> {
  const waiting: ((reply: RemoteReply) => void)[] = [];
  const server = await startRemoteServer(() => {
    const { promise, resolve } = Promise.withResolvers<RemoteReply>();
    waiting.push(resolve);
    return promise;
  });
  return {
    server,
    async next() {
      await until(() => waiting.length > 0);
      return waiting.shift() ?? (() => undefined);
    },
    async through(asked, reply) {
      let ended = false;
      void asked.finally(() => (ended = true));
      await until(() => {
        waiting.shift()?.(reply);
        return ended;
      });
      return asked;
    },
  };
}

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());

let backend: RawBackend;
let policy: HeldServer;
let provider: HeldServer;
let logins: HeldServer;
let gate: Sallyport;
beforeAll(async () => {
  backend = stack.use(
    await startRawBackend(({ startLine }) =>
      startLine.includes("/hang")
        ? "hang"
        : { write: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" },
    ),
  );
  [policy, provider, logins] = [await startHeld(), await startHeld(), await startHeld()];
  for (const { server } of [policy, provider, logins]) stack.use(server);
  gate = stack.use(
    await startSallyport({
      withoutToken: true,
      target: backend.url,
      files: { "keys.json": JSON.stringify({ keys: [pair.jwk] }) },
      config: {
        server: { tls: "off", workers: 2 },
        login: { hashing: { concurrency: 1 } },
        users: [
          { kind: "file", path: "users.yaml" },
          { kind: "http", url: logins.server.url, timeout: "20s" },
        ],
        tokens: {
          revocation: { logout: true },
          trusted: [
            {
              clockSkew: "0s",
              issuer: ISSUER,
              audience: "orders",
              algorithms: ["ES256"],
              jwks: { file: "keys.json" },
            },
            {
              issuer: "opaque",
              introspection: {
                url: provider.server.url,
                clientId: "a",
                clientSecret: "of-the-test",
                timeout: "20s",
                cache: "1m",
              },
            },
          ],
        },
        authorization: {
          policy: { kind: "http", url: policy.server.url, timeout: "20s", cache: "0s" },
        },
        routes: [
          { name: "checked", path: "/checked", upstream: "app", authorize: "policy" },
          ...LIMITED.map((by) => ({
            name: `by-${by}`,
            path: `/by-${by}`,
            upstream: "app",
            authorize: "policy",
            rateLimit: { requests: 1, within: "1m", by },
          })),
          { name: "rest", path: "/", upstream: "app" },
        ],
      },
    }),
  );
});
beforeEach(() => backend.forget());

const admin = (path: string): Promise<Answer> =>
  ask({ port: gate.adminPort }, path, { method: "POST" });
async function done(path: string): Promise<void> {
  expect((await admin(path)).status).toBe(200);
}
const tokenIn = (answer: Answer): string => String(fieldsOf(answer)["token"]);
const ALLOWED: RemoteReply = {};

describe("while an authorization server is asked about a caller", () => {
  it.each([
    ["its jti is revoked", () => done("/-/revoke?jti=one")],
    ["its subject is revoked", () => done("/-/revoke?subject=revoked-one")],
    [
      "it logs out",
      async (token: string) => {
        expect((await ask(gate, "/api/logout", { method: "POST", token })).status).toBe(200);
      },
    ],
  ])("%s: 401", async (what, revoke) => {
    const sub = what.startsWith("its subject") ? "revoked-one" : "zoe";
    const jti = what.startsWith("its jti") ? "one" : "two";
    const token = what.startsWith("it logs out")
      ? await gate.login(ALICE.username, ALICE.password)
      : await foreignToken({ sub, jti, iat: now() - 5 });
    const asked = ask(gate, "/checked/x", { token });
    const reply = await policy.next();
    await revoke(token);
    reply(ALLOWED);
    expect((await asked).status).toBe(401);
    expect(backend.seen()).toEqual([]);
  });

  it("it expires: 401", async () => {
    const token = await foreignToken({ exp: now() + 2 });
    const asked = ask(gate, "/checked/x", { token });
    const reply = await policy.next();
    const { exp } = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
    await until(() => Date.now() >= exp * 1000);
    reply(ALLOWED);
    expect((await asked).status).toBe(401);
    expect(backend.seen()).toEqual([]);
  });

  it("the key of its issuer is replaced: 401", async () => {
    const asked = ask(gate, "/checked/x", { token: await foreignToken() });
    const reply = await policy.next();
    const keysWith = (keys: object[]) => replaceFile(gate, "keys.json", JSON.stringify({ keys }));
    try {
      await keysWith([signingPair("second").jwk]);
      // Each worker reads the file for itself.
      for (let refused = 0; refused < 8;) {
        const { status } = await ask(gate, "/x", { token: await foreignToken() });
        refused = status === 401 ? refused + 1 : 0;
      }
      backend.forget();
      reply(ALLOWED);
      expect((await asked).status).toBe(401);
      expect(backend.seen()).toEqual([]);
    } finally {
      await keysWith([pair.jwk]);
      await until(async () => {
        const { status } = await ask(gate, "/x", { token: await foreignToken() });
        return status === 200;
      });
    }
  });

  it.each(LIMITED)("the configuration changes: a rate limit by %s counts it once", async (by) => {
    const asked = ask(gate, `/by-${by}/x`, { token: await foreignToken() });
    const reply = await policy.next();
    await editConfiguration(gate, ({ routes }) => {
      routes.unshift({ name: `new-for-${by}`, path: `/new-for-${by}`, upstream: "app" });
    });
    await done("/-/reload");
    reply(ALLOWED);
    expect((await policy.through(asked, ALLOWED)).status).toBe(200);
    const another = ask(gate, `/by-${by}/x`, { token: await foreignToken() });
    expect((await policy.through(another, ALLOWED)).status).toBe(429);
  });

  it("a later recheck of an open request counts, in whichever order the answers come", async () => {
    const asked = ask(gate, "/checked/hang", { token: await foreignToken() });
    (await policy.next())(ALLOWED);
    await until(() => backend.seen().length === 1);
    await editConfiguration(gate, ({ routes }) => {
      routes.unshift({ name: "first", path: "/first", upstream: "app" });
    });
    await done("/-/reload");
    const first = await policy.next();
    // Another address, so that the second recheck asks a question of its own.
    await editConfiguration(gate, (config) => {
      config.routes.unshift({ name: "second", path: "/second", upstream: "app" });
      Object.assign(Object(config["authorization"]).policy, { url: `${policy.server.url}/second` });
    });
    await done("/-/reload");
    const second = await policy.next();
    first(ALLOWED);
    second({ status: 403 });
    expect((await asked).status).toBe(403);
  });
});

describe("while a server is asked about a token", () => {
  const active = (sub: string): RemoteReply => ({ body: { active: true, sub, iat: now() - 5 } });

  it("its subject is revoked: 401", async () => {
    const asked = ask(gate, "/x", { token: "opaque-1" });
    const reply = await provider.next();
    await done("/-/revoke?subject=introspected");
    reply(active("introspected"));
    expect((await asked).status).toBe(401);
    expect(backend.seen()).toEqual([]);
  });

  it("its issuer leaves the configuration: 401, on routes and on Sallyport's own paths", async () => {
    const asked = ["/x", "/api/version"].map((path, at) =>
      ask(gate, path, { token: `opaque-at-${at}` }),
    );
    const replies = [await provider.next(), await provider.next()];
    const before: unknown[] = [];
    await editConfiguration(gate, (config) => {
      const tokens = Object(config["tokens"]);
      before.push(...tokens.trusted);
      tokens.trusted = tokens.trusted.slice(0, 1);
    });
    await done("/-/reload");
    for (const reply of replies) reply(active("zoe"));
    for (const answer of asked) expect((await answer).status).toBe(401);
    expect(backend.seen()).toEqual([]);
    await editConfiguration(gate, (config) => {
      Object(config["tokens"]).trusted = before;
    });
    await done("/-/reload");
  });
});

/** An argon2id hash that takes about 0.2 s: 64 MiB in three passes. */
function slowHash(password: string): string {
  const nonce = randomBytes(16);
  const cost = { memory: 65_536, passes: 3, parallelism: 1 };
  const hash = argon2Sync("argon2id", { message: password, nonce, tagLength: 32, ...cost });
  const [salt, tag] = [nonce, hash].map((bytes) => bytes.toString("base64").replaceAll("=", ""));
  return `$argon2id$v=19$m=65536,t=3,p=1$${salt}$${tag}`;
}

describe("while a login is under way", () => {
  const SLOW = slowHash("slow");
  const CAROL = { password: cheapHash("cherry") };
  const usersWith = (carol: object | undefined): Promise<void> => {
    const slow = Array.from({ length: 3 }, (_, at) => [`slow-${at}`, { password: SLOW }]);
    const users = { ...Object.fromEntries(slow), ...(carol && { carol }) };
    return replaceFile(gate, "users.yaml", JSON.stringify({ users }));
  };

  it.each([
    ["its user is removed", undefined, 401],
    ["its user is disabled", { ...CAROL, disabled: true }, 401],
    ["its password is changed", { password: cheapHash("clementine") }, 401],
    ["its password gets another salt", { password: cheapHash("cherry") }, 200],
  ] as const)("%s", async (_what, after, expected) => {
    await usersWith(CAROL);
    await done("/-/reload");
    // The only hashing thread is busy with the others first.
    const others = [0, 1, 2].map((at) =>
      askLogin(gate, { username: `slow-${at}`, password: "slow" }),
    );
    const length = async (): Promise<number> =>
      (await scrape(gate)).value("sallyport_login_queue_length") ?? 0;
    await until(async () => (await length()) === 2);
    let ended = false;
    const login = askLogin(gate, { username: "carol", password: "cherry" }).finally(() => {
      ended = true;
    });
    await until(async () => (await length()) === 3 || ended);
    await usersWith(after);
    await done("/-/reload");
    expect(ended, "the machine is too slow: the login had ended before").toBe(false);
    // The name is unknown to the file now, so the next store is asked.
    if (after === undefined) (await logins.next())({ status: 401 });
    expect((await login).status).toBe(expected);
    await Promise.all(others);
  });

  it("its subject is revoked: the token is refused by every worker", async () => {
    const login = askLogin(gate, { username: "remote", password: "x" });
    const reply = await logins.next();
    await until(() => new Date().getMilliseconds() < 900);
    await done("/-/revoke?subject=remote");
    // The revocation covers the second in which it was made.
    const second = now();
    await until(() => now() > second);
    reply({ body: { subject: "remote" } });
    const token = tokenIn(await login);
    for (let i = 0; i < 6; i += 1) expect((await ask(gate, "/x", { token })).status).toBe(401);
    const again = askLogin(gate, { username: "remote", password: "x" });
    (await logins.next())({ body: { subject: "remote" } });
    expect((await ask(gate, "/x", { token: tokenIn(await again) })).status).toBe(200);
  });

  it("its store leaves the configuration: 401", async () => {
    const login = askLogin(gate, { username: "remote", password: "x" });
    const reply = await logins.next();
    const before: unknown[] = [];
    await editConfiguration(gate, (config) => {
      before.push(...(config["users"] as unknown[]));
      config["users"] = before.slice(0, 1);
    });
    await done("/-/reload");
    reply({ body: { subject: "remote" } });
    expect((await login).status).toBe(401);
    await editConfiguration(gate, (config) => {
      config["users"] = before;
    });
    await done("/-/reload");
  });

  it("the life of tokens is shortened: so is that of its token", async () => {
    const login = askLogin(gate, { username: "remote", password: "x" });
    const reply = await logins.next();
    await editConfiguration(gate, (config) => {
      Object(config["tokens"]).lifetime = "1m";
    });
    await done("/-/reload");
    reply({ body: { subject: "remote" } });
    (await logins.next())({ body: { subject: "remote" } });
    const claims = Buffer.from(tokenIn(await login).split(".")[1] ?? "", "base64url").toString();
    const { exp, iat } = JSON.parse(claims);
    expect(exp - iat).toBe(60);
  });
});

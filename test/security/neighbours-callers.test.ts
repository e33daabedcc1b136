/**
 * Advisories of 2025 and 2026 about callers who come by different ways: tokens that keys verify, tokens that another
 * server knows, and what is cached about them. The class numbers are those of the table in SECURITY.md.
 *
 * - 5, 6: an encrypted token reaches a decryption with costs that it chooses, and a cut opaque token is still valid
 *   (lua-resty-jwt, APISIX, ZITADEL).
 * - 7, 36: what one way to a token checks, a second way forgets: audience, expiry, the requirement of the route
 *   (ZITADEL, dex, Kuadrant).
 * - 9: two callers share what is cached or counted, because the parts of its key are joined without a boundary
 *   (fastify/reply-from).
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { byKey, compact } from "../support/compact-token.ts";
import { signingPair } from "../support/foreign-keys.ts";
import { valuesOf } from "../support/http-reader.ts";
import { startRemoteServer } from "../support/remote-server.ts";
import { claims, header, OWN, seconds, useTokenGate } from "../support/token-gate.ts";
import { acceptingUpgrades, waysInto } from "../support/ways.ts";

type Claims = Readonly<Record<string, unknown>>;
const own = byKey(OWN.privateKey);
const pair = signingPair("theirs");

/** What the introspection endpoints and the API server say about a token. */
type Known = ReadonlyMap<string, object>;
const introspected = new Map<string, object>();
const elsewhere = new Map<string, object>();
const reviewed = new Map<string, object>();
const introspecting = (known: Known) =>
  startRemoteServer(({ body }) => {
    const found = known.get(new URLSearchParams(body).get("token") ?? "");
    return { body: { active: found !== undefined, ...found } };
  });
const provider = await introspecting(introspected);
const other = await introspecting(elsewhere);
const cluster = await startRemoteServer(({ body }) => {
  const found = reviewed.get(JSON.parse(body).spec.token);
  return { status: 201, body: { status: { authenticated: found !== undefined, ...found } } };
});
let allowed: (question: string) => boolean = () => true;
const policy = await startRemoteServer(({ body }) => ({ status: allowed(body) ? 200 : 403 }));
const servers = [provider, other, cluster, policy];
afterAll(() => Promise.all(servers.map((each) => each.close())));

const KEYED = "https://keyed.example";
const SHORT = "https://short.example";
const LONGER = "https://keyed.example/x";
const keyed = (issuer: string, more: object = {}) => ({
  issuer,
  audience: "orders",
  jwks: { file: "theirs.json" },
  algorithms: ["ES256"],
  clockSkew: "0s",
  ...more,
});
const remote = { clientId: "sallyport", clientSecret: "secret", cache: "30s", timeout: "2s" };
const route = (name: string, more: object) => ({
  name,
  path: `/${name}`,
  upstream: "app",
  ...more,
});

const standing = useTokenGate({
  files: { "theirs.json": JSON.stringify({ keys: [pair.jwk] }) },
  config: {
    server: { http2: true, tls: "off" },
    tokens: {
      trusted: [
        keyed(KEYED),
        keyed(LONGER),
        keyed(SHORT, { maxLifetime: "1h" }),
        {
          issuer: "for-orders",
          audience: "orders",
          introspection: { url: provider.url, ...remote },
        },
        { issuer: "for-any", introspection: { url: other.url, ...remote } },
        {
          issuer: "cluster",
          tokenReview: {
            apiServer: cluster.url,
            audiences: ["orders"],
            cache: "30s",
            timeout: "2s",
          },
        },
      ],
    },
    authorization: { policy: { kind: "http", url: policy.url, cache: "30s", timeout: "2s" } },
    routes: [
      route("groups", { require: { groups: { any: ["admin"] } } }),
      route("scopes", { require: { scopes: { all: ["write"] } } }),
      route("claims", { require: { claims: [{ claim: "tenant", equals: "acme" }] } }),
      route("elsewhere", { allow: ["192.0.2.0/24"] }),
      route("policy", { authorize: "policy" }),
      route("watched", { mode: "monitor", require: { groups: { any: ["admin"] } } }),
      route("rate", { rateLimit: { requests: 1, within: "1h", burst: 1, by: "subject" } }),
      route("rate1", { rateLimit: { requests: 1, within: "1h", burst: 1, by: "subject" } }),
      route("rest", { path: "/" }),
    ],
  },
});
beforeEach(() => standing().backend.answerWith(acceptingUpgrades));

const WAYS = Object.entries(waysInto(() => standing().gate));
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
const statusOf = async (token: string, path = "/x"): Promise<number> =>
  (await ask(standing().gate, path, { token })).status;
const theirs = (more: Claims = {}): string =>
  compact(
    { alg: "ES256", kid: "theirs" },
    claims({ iss: KEYED, aud: "orders", ...more }),
    byKey(pair.privateKey),
  );
const asked = (): number => provider.asked.length + other.asked.length + cluster.asked.length;
let count = 0;
/** A token of no issuer with keys, which nobody has seen before. */
const opaque = (): string => `opaque-${(count += 1)}-token`;

describe("5: an encrypted token", () => {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const jwe = (head: object): string => [part(head), "a2V5", "aXY", "dGV4dA", "dGFn"].join(".");

  it("is never decrypted: it is as opaque as any text, whatever its header costs or names", async () => {
    for (const head of [
      { alg: "PBES2-HS512+A256KW", enc: "A256GCM", p2c: 2 ** 31, p2s: "c2FsdA" },
      { alg: "dir", enc: "A256GCM", iss: KEYED },
      { alg: "RSA-OAEP", enc: "A128CBC-HS256", zip: "DEF", kid: OWN.kid },
    ]) {
      const token = jwe(head);
      const began = performance.now();
      const before = asked();
      expect(await statusOf(token)).toBe(401);
      expect(performance.now() - began).toBeLessThan(1_000);
      expect(asked()).toBe(before + 3);
      // Four and six parts are texts, too.
      for (const text of [`${token}.x`, token.slice(0, token.lastIndexOf("."))]) {
        expect(await statusOf(text)).toBe(401);
      }
    }
    const sources = join(import.meta.dirname, "../../src");
    const decrypts = globSync("**/*.ts", { cwd: sources }).filter((file) =>
      /(?:ecrypt|Decipher)\w*\(/.test(readFileSync(join(sources, file), "utf8")),
    );
    // What a browser keeps while a person is at a provider: no token, and by direct encryption alone.
    expect(decrypts).toEqual(["tokens/providers/provider-sign-ins.ts"]);
  });

  it("is asked about in the order of the issuers, and of no further one once one knows it", async () => {
    const token = jwe({ alg: "dir", enc: "A256GCM", n: 1 });
    introspected.set(token, { sub: "zoe", aud: "orders" });
    const before = [provider, other, cluster].map((each) => each.asked.length);
    expect(await statusOf(token)).toBe(200);
    const after = [provider, other, cluster].map((each) => each.asked.length);
    expect(after.map((now, at) => now - (before[at] ?? 0))).toEqual([1, 0, 0]);
  });
});

describe("6: a cached opaque token", () => {
  it("is valid only as a whole", async () => {
    const token = "Opaque.token-With_ALL~letters+and/more==";
    introspected.set(token, { sub: "zoe", aud: "orders" });
    for (let turn = 0; turn < 2; turn += 1) expect(await statusOf(token)).toBe(200);
    const others = [
      ...[token.slice(0, -1), token.slice(0, -2), token.slice(0, 20), token.slice(1), `${token}=`],
      ...[`${token}x`, token.toLowerCase(), token.toUpperCase(), token.replace("Opaque", "0paque")],
      ...[token.replaceAll("+", "-"), token.replaceAll("/", "_"), encodeURIComponent(token)],
    ];
    for (const text of others) expect([text, await statusOf(text)]).toEqual([text, 401]);
    expect(await statusOf(token)).toBe(200);
  });
});

describe("7: what each way to a token requires of it", () => {
  const now = seconds();
  const CASES: Readonly<Record<string, Claims>> = {
    "no aud": { aud: undefined },
    "another aud": { aud: "other" },
    "no exp": { exp: undefined },
    "an exp in ten years": { exp: now + 315_360_000 },
    "no iat": { iat: undefined },
    "an iat in the future": { iat: now + 3_000 },
    "a past exp": { exp: now - 3_000 },
    "an nbf in the future": { nbf: now + 3_000 },
  };
  const tokenBy: Readonly<Record<string, (more: Claims) => string>> = {
    ours: (more) => compact(header(), claims(more), own),
    keyed: theirs,
    "keyed, with maxLifetime": (more) => theirs({ iss: SHORT, ...more }),
    introspected: (more) => known(introspected, { sub: "zoe", aud: "orders", ...more }),
    "introspected, for any audience": (more) => known(elsewhere, { sub: "zoe", ...more }),
  };
  function known(where: Map<string, object>, found: object): string {
    const token = opaque();
    where.set(token, JSON.parse(JSON.stringify(found)));
    return token;
  }
  /** The cases that each way accepts. */
  const ACCEPTED: Readonly<Record<string, readonly string[]>> = {
    ours: ["an exp in ten years", "no iat"],
    keyed: ["an exp in ten years", "no iat"],
    "keyed, with maxLifetime": [],
    // The server says when it is no longer active (RFC 7662 §2.2).
    introspected: ["no exp", "an exp in ten years", "no iat"],
    "introspected, for any audience": [
      ...["no aud", "another aud", "no exp", "an exp in ten years", "no iat"],
    ],
  };

  it.each(Object.keys(tokenBy))("%s", async (way) => {
    const make = tokenBy[way] ?? theirs;
    expect(await statusOf(make({}))).toBe(200);
    const accepted = [];
    for (const [name, more] of Object.entries(CASES)) {
      const status = await statusOf(make(more));
      expect([200, 401]).toContain(status);
      if (status === 200) accepted.push(name);
    }
    expect(accepted).toEqual(ACCEPTED[way]);
  });

  it("TokenReview: one of the audiences that were asked for, and the times of the API server", async () => {
    const review = (found: object): Promise<number> => {
      const token = opaque();
      reviewed.set(token, { user: { username: "zoe" }, ...found });
      return statusOf(token);
    };
    expect(await review({ audiences: ["orders"] })).toBe(200);
    for (const audiences of [undefined, [], ["other"], "orders", [["orders"]]]) {
      expect(await review({ audiences })).toBe(401);
    }
  });
});

describe("9: callers whose names differ only in where a part ends", () => {
  const CALLERS = [
    [KEYED, "/x/y"],
    [LONGER, "/y"],
    [KEYED, "x"],
    [LONGER, "x"],
    [KEYED, "x/y"],
    [LONGER, "y"],
    [KEYED, '","sub":"y'],
    [KEYED, "1x"],
  ] as const;
  const tokenOf = ([iss, sub]: (typeof CALLERS)[number], more = {}) =>
    theirs({ iss, sub, ...more });

  it("are limited separately, and on each route", async () => {
    for (const path of ["/rate", "/rate1"]) {
      for (const turn of [200, 429]) {
        for (const caller of CALLERS) {
          const token = tokenOf(caller, { turn });
          expect([path, caller, await statusOf(token, path)]).toEqual([path, caller, turn]);
        }
      }
    }
  });

  it("are authorized separately, with each list of groups, method and path", async () => {
    const questions: string[] = [];
    allowed = (question) => questions.push(question) % 2 === 0;
    const groups = [["a", "b"], ["a,b"], ["ab"], [], ['a","b'], ["b", "a"]];
    const tokens = [
      ...CALLERS.map((caller) => tokenOf(caller)),
      ...groups.map((each) => theirs({ sub: "grouped", groups: each })),
    ];
    const paths = ["/policy", "/policy/a", "/policy/a/b"];
    const all = tokens.flatMap((token) => paths.map((path) => [token, path] as const));
    for (const [at, [token, path]] of all.entries()) {
      expect(await statusOf(token, path)).toBe(at % 2 === 0 ? 403 : 200);
    }
    expect(new Set(questions).size).toBe(all.length);
    // From the cache.
    for (const [at, [token, path]] of all.entries()) {
      expect(await statusOf(token, path)).toBe(at % 2 === 0 ? 403 : 200);
    }
    expect(questions).toHaveLength(all.length);
    allowed = () => true;
  });
});

describe("36: every requirement holds for every way to a token", () => {
  const good = {
    sub: "zoe",
    aud: "orders",
    groups: ["admin"],
    scope: "read write",
    tenant: "acme",
  };
  const lacking = {
    sub: "zoe",
    aud: "orders",
    groups: ["admins"],
    scope: "writer",
    tenant: "acme2",
  };
  const tokenBy: Readonly<Record<string, (told: typeof good) => string>> = {
    ours: (told) => compact(header(), claims({ ...told, aud: "sallyport" }), own),
    keyed: theirs,
    introspected(told) {
      const token = opaque();
      introspected.set(token, told);
      return token;
    },
    reviewed({ sub: username, groups, aud }) {
      const token = opaque();
      reviewed.set(token, { audiences: [aud], user: { username, groups } });
      return token;
    },
  };
  const cases = Object.keys(tokenBy).flatMap((token) =>
    WAYS.map(([way, send]) => ({ token, way, send })),
  );

  it.each(cases)("$token, over $way", async ({ token: kind, send }) => {
    const make = tokenBy[kind] ?? theirs;
    const [fit, unfit] = [make(good), make(lacking)];
    const decide = (path: string, token: string): Promise<number> =>
      send({ path, fields: bearer(token) });
    // A TokenReview tells of no scopes and no claims.
    const told = kind === "reviewed" ? 403 : 200;
    expect([await decide("/groups", fit), await decide("/groups", unfit)]).toEqual([200, 403]);
    expect([await decide("/scopes", fit), await decide("/scopes", unfit)]).toEqual([told, 403]);
    expect([await decide("/claims", fit), await decide("/claims", unfit)]).toEqual([told, 403]);
    expect([await decide("/elsewhere", fit), await decide("/policy", fit)]).toEqual([403, 200]);
    allowed = () => false;
    expect(await decide("/policy/no", fit)).toBe(403);
    allowed = () => true;
    // A route in monitor mode lets the request pass, without the caller.
    standing().backend.forget();
    expect([await decide("/watched", unfit), await decide("/watched", fit)]).toEqual([200, 200]);
    const subjects = standing()
      .backend.requests()
      .map(({ headers }) => valuesOf(headers, "x-auth-subject"));
    expect(subjects).toEqual([[], ["zoe"]]);
  });
});

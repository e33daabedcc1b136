/**
 * The attack: a token of one kind is accepted as one of another. An introspection endpoint that accepts anything is
 * sent our own tokens in another spelling; a TokenReview vouches for a token in the name of a trusted issuer; the
 * caller of one issuer becomes a user of the cluster; what one kind has cached lets in another. And floods of
 * garbage.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../../support/echo-backend.ts";
import { echoedBy } from "../../support/echoed.ts";
import {
  signingPair,
  signToken,
  startKeySetServer,
  type KeySetServer,
} from "../../support/foreign-keys.ts";
import {
  type RemoteReply,
  startRemoteServer,
  type RemoteServer,
} from "../../support/remote-server.ts";
import { startSallyport, type Sallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

const KEYED = "https://keyed.example.com";
const pair = signingPair("keyed");
const stranger = signingPair("keyed");
const now = (): number => Math.floor(Date.now() / 1000);
const tokenOf = (iss: string, by = pair, more: object = {}) =>
  signToken(by, { iss, aud: "orders", sub: "zoe", exp: now() + 600, ...more });

let introspect: (token: string) => RemoteReply;
let review: (token: string) => RemoteReply;
let allowed: boolean;
let backend: EchoBackend;
let keys: KeySetServer;
let provider: RemoteServer;
let cluster: RemoteServer;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  keys = await startKeySetServer(() => [pair.jwk]);
  provider = await startRemoteServer(({ body }) =>
    introspect(new URLSearchParams(body).get("token") ?? ""),
  );
  cluster = await startRemoteServer(({ url, body }) => {
    if (url.includes("subjectaccessreviews")) return { status: 201, body: { status: { allowed } } };
    return review((JSON.parse(body) as { spec: { token: string } }).spec.token);
  });
  const times = { cache: "30s", timeout: "1s" };
  const client = { clientId: "sallyport", clientSecret: "s:e/cret" };
  gate = await startSallyport({
    target: backend.url,
    config: {
      tokens: {
        trusted: [
          { issuer: KEYED, audience: "orders", algorithms: ["ES256"], jwks: keys.url },
          {
            issuer: "opaque",
            introspection: { url: `${provider.url}/introspect`, ...client, ...times },
          },
          {
            issuer: "cluster",
            tokenReview: { apiServer: cluster.url, audiences: ["orders"], ...times },
          },
        ],
      },
      authorization: { rbac: { kind: "subjectAccessReview", apiServer: cluster.url } },
      routes: [
        { name: "rbac", path: "/rbac", upstream: "app", authorize: "rbac" },
        { name: "all", path: "/", upstream: "app" },
      ],
    },
  });
  await ask(gate, "/x", { token: await tokenOf(KEYED) });
});
afterAll(async () => {
  await gate.close();
  await Promise.all([backend.close(), keys.close(), provider.close(), cluster.close()]);
});

const ACTIVE = { active: true, sub: "admin", token_type: "Bearer" };
const vouched = (more: object = {}): RemoteReply => ({
  status: 201,
  body: {
    status: { authenticated: true, audiences: ["orders"], user: { username: "admin" }, ...more },
  },
});
beforeEach(() => {
  introspect = () => ({ body: ACTIVE });
  review = () => vouched();
  allowed = true;
});

const statusOf = async (token: string, path = "/x"): Promise<number> =>
  (await ask(gate, path, { token })).status;
const callerOf = async (token: string): Promise<string> => {
  const echoed = echoedBy(await ask(gate, "/x", { token }));
  return `${echoed.header("x-auth-subject")} of ${echoed.header("x-auth-issuer")}`;
};

describe("a token of an issuer with keys", () => {
  it("is never sent to another server, whatever is wrong with it", async () => {
    const before = provider.asked.length + cluster.asked.length;
    const good = await tokenOf(KEYED);
    expect(await callerOf(good)).toBe(`zoe of ${KEYED}`);
    for (const bad of [
      await tokenOf(KEYED, stranger),
      await tokenOf(KEYED, pair, { exp: now() - 600 }),
      await tokenOf(KEYED, pair, { aud: "other" }),
      await tokenOf("sallyport", stranger),
      `${good}=`,
      `${good.slice(0, -1)}${good.endsWith("A") ? "B" : "A"}`,
    ]) {
      expect(await statusOf(bad)).toBe(401);
    }
    expect(provider.asked.length + cluster.asked.length).toBe(before);
  });
});

describe("a token of no issuer with keys", () => {
  it("is the caller of the server that knows it, under that issuer's name", async () => {
    expect(await callerOf("opaque-1")).toBe("admin of opaque");
    const [asked] = provider.asked.slice(-1);
    const secret = Buffer.from("sallyport:s%3Ae%2Fcret").toString("base64");
    expect(asked?.headers.authorization).toBe(`Basic ${secret}`);
    expect(await callerOf(await tokenOf("https://kubernetes.default.svc"))).toBe(
      "admin of cluster",
    );
    introspect = () => ({ body: { active: false } });
    expect(await callerOf("opaque-2")).toBe("admin of cluster");
  });

  it("is not introspected if it is a JWT, nor accepted if the answer is about something else", async () => {
    const { length } = provider.asked;
    review = () => vouched({ authenticated: false });
    expect(await statusOf(await tokenOf("https://unknown.example"))).toBe(401);
    expect(provider.asked).toHaveLength(length);
    for (const [n, answer] of [
      { ...ACTIVE, token_type: "DPoP" },
      { ...ACTIVE, cnf: { jkt: "x" } },
      { ...ACTIVE, exp: now() - 600 },
      { ...ACTIVE, sub: undefined },
      { ...ACTIVE, sub: "a\u0000b" },
      { active: false },
    ].entries()) {
      introspect = () => ({ body: answer });
      expect(await statusOf(`odd-${n}`), JSON.stringify(answer)).toBe(401);
    }
    review = () => vouched({ audiences: ["https://kubernetes.default.svc"] });
    expect(await statusOf("other-audience")).toBe(401);
    review = () => vouched({ audiences: undefined });
    expect(await statusOf("no-audience")).toBe(401);
  });

  it("gets 503 and never 401 while a server that may know it is unavailable, which is then queried again", async () => {
    review = () => vouched({ authenticated: false });
    const broken: [string, RemoteReply][] = [
      ["error", { status: 500 }],
      ["unauthorized", { status: 401 }],
      ["page", { body: "<html>" }],
      ["text", { body: { active: "true" } }],
      ["twice", { body: '{"active":false,"active":true}' }],
      ["large", { body: { ...ACTIVE, pad: "x".repeat(70_000) } }],
      ["reset", "reset"],
    ];
    for (const [name, reply] of broken) {
      introspect = () => reply;
      expect(await statusOf(`broken-${name}`), name).toBe(503);
    }
    introspect = () => ({ body: ACTIVE });
    expect(await statusOf("broken-error")).toBe(200);
  });

  it("is checked once while it is cached, accepted or not", async () => {
    const { length } = provider.asked;
    for (let turn = 0; turn < 5; turn += 1) expect(await statusOf("remembered")).toBe(200);
    expect(provider.asked).toHaveLength(length + 1);
    introspect = () => ({ body: { active: false } });
    review = () => vouched({ authenticated: false });
    const garbage = Array.from({ length: 20 }, () => statusOf("garbage"));
    expect(new Set(await Promise.all(garbage))).toEqual(new Set([401]));
    expect(provider.asked).toHaveLength(length + 2);
  });
});

describe("a token that is bound to a key (RFC 7800)", () => {
  const BOUND = [{ jkt: "x" }, { "x5t#S256": "x" }, { kid: "x" }, {}, null, "x"];

  it("is refused, whoever verifies it: nothing here checks the key", async () => {
    const series = 'sallyport_auth_decisions_total{result="denied",reason="sender_constrained"}';
    const counted = async (): Promise<number> => (await scrape(gate)).value(series) ?? 0;
    const before = await counted();
    for (const [n, cnf] of BOUND.entries()) {
      expect(await statusOf(await tokenOf(KEYED, pair, { cnf }))).toBe(401);
      expect(await statusOf(await tokenOf("https://unknown.example", pair, { cnf, n }))).toBe(401);
      introspect = () => ({ body: { ...ACTIVE, cnf } });
      review = () => vouched({ authenticated: false });
      expect(await statusOf(`bound-${n}`)).toBe(401);
      review = () => vouched();
    }
    expect((await counted()) - before).toBe(3 * BOUND.length);
  });
});

describe("a token that expires while its answer is cached", () => {
  it.each([
    ["introspection", () => provider, async () => "short-lived"],
    [
      "TokenReview",
      () => cluster,
      (exp: number) => tokenOf("https://kubernetes.default.svc", pair, { exp }),
    ],
  ] as const)("is asked about again, whatever the clock skew: %s", async (_kind, server, make) => {
    const exp = now() + 2;
    introspect = () => ({ body: { ...ACTIVE, exp } });
    const token = await make(exp);
    const { length } = server().asked;
    expect(await statusOf(token)).toBe(200);
    await until(() => Date.now() >= exp * 1000);
    expect(server().asked).toHaveLength(length + 1);
    introspect = () => ({ body: { active: false } });
    review = () => vouched({ authenticated: false });
    expect(await statusOf(token)).toBe(401);
  });
});

describe("a route that Kubernetes authorizes", () => {
  it("lets in only callers of the cluster: the same name from another issuer is another caller", async () => {
    const cluster1 = await tokenOf("https://kubernetes.default.svc", pair, { n: 1 });
    expect(await statusOf(cluster1, "/rbac")).toBe(200);
    expect(await statusOf("opaque-admin", "/rbac")).toBe(403);
    const keyed = await tokenOf(KEYED, pair, { sub: "admin" });
    expect(await statusOf(keyed)).toBe(200);
    expect(await statusOf(keyed, "/rbac")).toBe(403);
    expect(await statusOf(gate.token, "/rbac")).toBe(403);
    allowed = false;
    expect(await statusOf(cluster1, "/rbac/x")).toBe(403);
  });
});

it("shows the checks in metrics, and no token or secret in a log line", async () => {
  const { text } = await scrape(gate);
  for (const [kind, name, result] of [
    ["introspection", "opaque", "allowed"],
    ["introspection", "opaque", "unavailable"],
    ["tokenReview", "cluster", "denied"],
    ["subjectAccessReview", "rbac", "allowed"],
  ]) {
    const series = `sallyport_remote_checks_total{kind="${kind}",name="${name}",result="${result}"}`;
    expect(text).toMatch(new RegExp(`${series.replaceAll(/[{}]/g, "\\$&")} [1-9]`));
  }
  const log = JSON.stringify(gate.log());
  expect(log).toContain("a remote check is unavailable");
  for (const secret of ["s:e/cret", "opaque-1", "broken-error", "remembered"]) {
    expect(log).not.toContain(secret);
  }
});

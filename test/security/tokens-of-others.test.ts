/**
 * `others: ignore`: a place may hold an application's own token. What is ignored is never verified, so it must decide nothing: not
 * who the caller is, nor which of two tokens counts. And what could be accepted here is never ignored, or a caller could choose
 * between a refused token and another one; nor does it reach the backend.
 */
import { describe, expect, it } from "vitest";
import { valuesOf } from "../support/http-reader.ts";
import { useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";

const encoded = (value: unknown): string =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");
/** A JWT that nobody has signed. */
const jwt = (claims: unknown, header: object = { alg: "HS256" }): string =>
  `${encoded(header)}.${encoded(claims)}.${encoded("signature")}`;
const THEIRS = jwt({ iss: "https://app.example", sub: "root", groups: ["boss"] });
const OURS = jwt({ iss: "sallyport", sub: "root" });
const TRUSTED = jwt({ iss: "https://cluster.example", sub: "root" });

const places = (kinds: readonly object[]) => kinds.map((kind) => ({ ...kind, others: "ignore" }));
const KINDS = [
  { header: "Authorization" },
  { header: "X-Token" },
  { cookie: "app" },
  { query: "t" },
  { websocketProtocol: true },
];
const everywhere = places(KINDS);
const route = (name: string, tokenFrom: readonly object[], more: object = {}) => ({
  name,
  path: `/${name}`,
  upstream: "app",
  tokenFrom,
  ...more,
});
const routes = [
  route("all", [...everywhere, { cookie: "session" }]),
  route("swapped", [{ cookie: "session" }, ...everywhere.toReversed()]),
  route("optional", [...everywhere, { cookie: "session" }], { auth: "optional" }),
  route("watched", [...everywhere, { cookie: "session" }], { mode: "monitor" }),
  route("strict", [...KINDS, { cookie: "session" }]),
  route("keys", [
    { header: "Authorization", others: "ignore" },
    { apiKey: "Authorization" },
    { cookie: "session" },
  ]),
];
const trusted = [
  {
    issuer: "https://cluster.example",
    audience: "x",
    algorithms: ["RS256"],
    jwks: { file: "keys.json" },
  },
];
const files = {
  "keys.json": JSON.stringify({ keys: [] }),
  "api-keys.yaml": JSON.stringify({ keys: {} }),
};
const apiKeys = [{ kind: "file", path: "api-keys.yaml" }];
const standing = useSallyport(undefined, {
  config: { apiKeys, routes, tokens: { trusted } },
  files,
});
const elsewhere = useSallyport(undefined, {
  files,
  config: {
    apiKeys,
    routes,
    // Nobody listens there.
    tokens: {
      trusted: [
        ...trusted,
        {
          issuer: "cluster",
          tokenReview: { apiServer: "http://127.0.0.1:9", audiences: ["orders"] },
        },
      ],
    },
  },
});
const introspecting = useSallyport(undefined, {
  files,
  config: {
    apiKeys,
    routes,
    tokens: {
      trusted: [
        ...trusted,
        {
          issuer: "opaque:main",
          introspection: { url: "http://127.0.0.1:9/", clientId: "a", clientSecret: "b" },
        },
      ],
    },
  },
});

interface Sent {
  readonly query?: string;
  readonly headers?: readonly string[];
}

/** Each place with a token in it. */
const IN: readonly (readonly [string, (token: string) => Sent])[] = [
  ["Authorization", (token) => ({ headers: [`Authorization: Bearer ${token}`] })],
  ["another header", (token) => ({ headers: [`X-Token: ${token}`] })],
  ["another header with the scheme", (token) => ({ headers: [`x-token: bearer ${token}`] })],
  ["a cookie", (token) => ({ headers: [`Cookie: a=1; app=${token};b="2"`] })],
  ["the query", (token) => ({ query: `?a=%zz&t=${token}&&b=1+2` })],
  [
    "the protocols of a WebSocket",
    (token) => ({ headers: [`Sec-WebSocket-Protocol: v1,  bearer, ${token}`] }),
  ],
];

async function send(path: string, { query = "", headers = [] }: Sent, at = standing) {
  const { gate, backend } = at();
  backend.forget();
  const lines = [`GET /${path}${query} HTTP/1.1`, "Host: localhost", ...headers];
  const { last } = await exchange(gate, request([...lines, "Sec-Fetch-Site: same-origin"]));
  const [seen] = backend.requests();
  return {
    status: last.status,
    seen,
    subjects: valuesOf(seen?.headers ?? [], "x-auth-subject"),
    target: seen?.startLine.split(" ")[1],
  };
}

/** Both at once; a request has one `Cookie` field. */
function both(one: Sent, { query = "", headers = [] }: Sent): Sent {
  const all = [...(one.headers ?? []), ...headers];
  const cookies = all.filter((line) => line.startsWith("Cookie: ")).map((line) => line.slice(8));
  const rest = all.filter((line) => !line.startsWith("Cookie: "));
  const cookie = cookies.length === 0 ? [] : [`Cookie: ${cookies.join("; ")}`];
  return { query: one.query ?? query, headers: [...rest, ...cookie] };
}

const session = (token: string): Sent => ({ headers: [`Cookie: session=${token}`] });

describe.each(IN)("in %s", (name, sent) => {
  it("a token of others leaves the caller to another place, and arrives byte for byte", async () => {
    const { token } = standing().gate;
    for (const path of ["all", "swapped"]) {
      for (const theirs of [THEIRS, "opaque-session-4711", jwt({ sub: "root" }), "a.b.c.d.e"]) {
        const whole = sent(theirs);
        const { status, seen, subjects, target } = await send(path, both(whole, session(token)));
        expect([path, theirs, status, subjects]).toEqual([path, theirs, 200, ["alice"]]);
        expect(target).toBe(`/${path}${whole.query ?? ""}`);
        for (const line of whole.headers ?? []) {
          const [field = "", value = ""] = line.split(/: (.*)/s);
          expect(valuesOf(seen?.headers ?? [], field.toLowerCase())).toEqual([value]);
        }
        expect(JSON.stringify(seen)).not.toContain(token.slice(-40));
      }
    }
  });

  it("alone, it is no token", async () => {
    expect((await send("all", sent(THEIRS))).status).toBe(401);
    const optional = await send("optional", sent(THEIRS));
    expect([optional.status, optional.subjects]).toEqual([200, []]);
    const watched = await send("watched", sent(THEIRS));
    expect([watched.status, watched.subjects]).toEqual([200, []]);
    expect(JSON.stringify([optional.seen, watched.seen])).toContain(THEIRS);
  });

  it("one that could be ours is never ignored, nor passed on", async () => {
    const { token } = standing().gate;
    const misspelt = token.replace(/^[^.]*/, "%%%");
    const twice = jwt(`{"iss":"https://app.example","iss":"sallyport"}`);
    const key = `sp_${"0".repeat(12)}_${"A".repeat(43)}`;
    const list = jwt({ iss: ["sallyport"] });
    const large = jwt({ iss: "https://app.example", a: "x".repeat(9_000) });
    for (const mine of [OURS, TRUSTED, token, misspelt, twice, "x.y.z", "..", key, list, large]) {
      if (mine === misspelt && name === "the query") continue;
      const { status } = await send("all", both(sent(mine), session(token)));
      expect([mine.slice(0, 60), status]).toEqual([mine.slice(0, 60), 401]);
      const watched = await send("watched", both(sent(mine), session(token)));
      expect(JSON.stringify(watched.seen)).not.toContain(mine.slice(-40));
    }
  });

  it("one of ours among other text is not ignored, nor passed on", async () => {
    const { token } = standing().gate;
    const key = `sp_${"0".repeat(12)}_${"A".repeat(43)}`;
    const inList = name === "a cookie" || name === "the protocols of a WebSocket" ? "|" : ", ";
    for (const mine of [
      ...[`${token}.`, `.${token}`, `${token}.${token}`, `opaque.${token}`],
      ...[`${token}${inList}Bearer ${THEIRS}`, `${THEIRS}${inList}Bearer ${token}`],
      ...[`${THEIRS}${inList}Bearer ${key}`, `opaque${inList}Bearer ${key}`, `x${key}`],
    ].map((each) => (name === "the query" || inList === "|" ? each.replaceAll(" ", "") : each))) {
      const { status } = await send("all", both(sent(mine), session(token)));
      expect([mine, status]).toEqual([mine, 401]);
      expect([mine, (await send("optional", sent(mine))).status]).toEqual([mine, 401]);
      const watched = await send("watched", sent(mine));
      expect(JSON.stringify(watched.seen)).not.toContain(mine.slice(-40));
    }
  });

  it("one of others beside one of ours does not help to tell which counts", async () => {
    const { token } = standing().gate;
    const again = sent(THEIRS);
    const twice: Sent =
      again.query === undefined
        ? { headers: [...(again.headers ?? []), ...(sent(token).headers ?? [])] }
        : { query: `${again.query}&t=${token}` };
    expect((await send("all", twice)).status).toBe(401);
    expect((await send("all", both(twice, session(token)))).status).toBe(401);
  });

  it("it is refused where others are not ignored, and where another server may know it", async () => {
    const { token } = standing().gate;
    expect((await send("strict", both(sent(THEIRS), session(token)))).status).toBe(401);
    const asked = elsewhere().gate.token;
    for (const theirs of [THEIRS, "opaque-session-4711"]) {
      const { status } = await send("all", sent(theirs), elsewhere);
      expect([theirs, status]).toEqual([theirs, 503]);
      expect((await send("all", both(sent(theirs), session(asked)), elsewhere)).status).toBe(401);
    }
    const { gate } = introspecting();
    const known = await send("all", both(sent(THEIRS), session(gate.token)), introspecting);
    expect([known.status, known.subjects]).toEqual([200, ["alice"]]);
    expect((await send("all", sent("opaque-session-4711"), introspecting)).status).toBe(503);
  });
});

it("two places with tokens of others leave the third, and two of ours are two", async () => {
  const { token } = standing().gate;
  const theirs = { query: `?t=${THEIRS}`, headers: [`Authorization: Bearer ${THEIRS}`] };
  const first = await send("all", both(theirs, { headers: [`X-Token: ${token}`] }));
  expect([first.status, first.subjects]).toEqual([200, ["alice"]]);
  expect(first.target).toBe(`/all?t=${THEIRS}`);
  expect(valuesOf(first.seen?.headers ?? [], "x-token")).toEqual([]);
  expect(valuesOf(first.seen?.headers ?? [], "authorization")).toEqual([`Bearer ${THEIRS}`]);
  const two = both(theirs, { headers: [`X-Token: ${token}`, `Cookie: session=${token}`] });
  expect((await send("all", two)).status).toBe(401);
});

it("other spellings of a header are removed, and other schemes stay what they were", async () => {
  const { token } = standing().gate;
  const headers = [`X_Token: ${THEIRS}`, `Authorization: Basic ${THEIRS}`];
  const { status, seen } = await send("all", both({ headers }, session(token)));
  expect(status).toBe(200);
  expect(JSON.stringify(seen)).not.toContain(THEIRS);
  const twice = [`Authorization: Bearer ${THEIRS}`, `Authorization: Bearer ${THEIRS}`];
  expect((await send("all", both({ headers: twice }, session(token)))).status).toBe(401);
});

it("an API key in the same header is a key, and a token of others none", async () => {
  const { token } = standing().gate;
  const theirs = both({ headers: [`Authorization: Bearer ${THEIRS}`] }, session(token));
  const { status, subjects, seen } = await send("keys", theirs);
  expect([status, subjects]).toEqual([200, ["alice"]]);
  expect(valuesOf(seen?.headers ?? [], "authorization")).toEqual([`Bearer ${THEIRS}`]);
  const key = `sp_${"0".repeat(12)}_${"A".repeat(43)}`;
  const keyed = both({ headers: [`Authorization: Bearer ${key}`] }, session(token));
  expect((await send("keys", keyed)).status).toBe(401);
});

/**
 * Tokens outside `Authorization`. Each place has its own ambiguities: several cookies of one name, quotes, encoded
 * names of query fields, two places at once. One token in one place is the caller's, and removed before the backend
 * sees it; anything else is a 401, and everything else in that place arrives byte for byte.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { valuesOf } from "../support/http-reader.ts";
import { useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";

const COOKIE = ["Sec-Fetch-Site: same-origin"];
const anywhere = [
  { header: "Authorization" },
  { cookie: "session" },
  { query: "access_token" },
  { header: "X-Token" },
  { websocketProtocol: true },
];
const route = (name: string, more: object) => ({
  name,
  path: `/${name}`,
  upstream: "app",
  ...more,
});
const standing = useSallyport(undefined, {
  config: {
    log: { level: "debug" },
    routes: [
      route("any", { tokenFrom: anywhere }),
      route("cookie", { tokenFrom: [{ cookie: "session" }] }),
      route("header", { tokenFrom: [{ header: "X-Token" }] }),
      route("optional", { auth: "optional", tokenFrom: anywhere }),
      route("watched", { mode: "monitor", tokenFrom: anywhere }),
      route("plain", {}),
    ],
  },
});

interface Sent {
  readonly path?: string;
  readonly headers?: readonly string[];
  readonly method?: string;
  readonly version?: string;
}

const bytesOf = ({ path = "/any", headers = [], method = "GET", version = "1.1" }: Sent): string =>
  request([`${method} ${path} HTTP/${version}`, "Host: localhost", ...headers]);

async function send(sent: Sent) {
  const { gate, backend } = standing();
  backend.forget();
  const { last } = await exchange(gate, bytesOf(sent));
  const [seen] = backend.requests();
  const [, target] = seen?.startLine.split(" ") ?? [];
  return { status: last.status, last, seen, target };
}

const kubernetes = (token: string): string =>
  `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString("base64url")}`;

type Place = readonly [name: string, sent: (token: string) => Sent];
const ONE_TOKEN: readonly Place[] = [
  ["Authorization", (t) => ({ headers: [`Authorization: Bearer ${t}`] })],
  ["a cookie", (t) => ({ headers: [`Cookie: session=${t}`] })],
  ["a cookie among others", (t) => ({ headers: [`Cookie: a=1; session=${t}; b=2`] })],
  ["a cookie in the second field", (t) => ({ headers: ["Cookie: a=1", `Cookie: session=${t}`] })],
  ["a query field", (t) => ({ path: `/any?access_token=${t}` })],
  ["a query field with an encoded name", (t) => ({ path: `/any?%61ccess%5ftoken=${t}` })],
  ["another header", (t) => ({ headers: [`X-Token: ${t}`] })],
  ["another header, with the scheme", (t) => ({ headers: [`x-token: bearer ${t}`] })],
  ["a protocol", (t) => ({ headers: [`Sec-WebSocket-Protocol: bearer, ${t}`] })],
  [
    "a protocol of Kubernetes",
    (t) => ({ headers: [`Sec-WebSocket-Protocol: ${kubernetes(t)}, v1`] }),
  ],
  [
    "a cookie, with Basic",
    (t) => ({ headers: ["Authorization: Basic eA==", `Cookie: session=${t}`] }),
  ],
];

describe("one token in one place", () => {
  it.each(ONE_TOKEN)("passes and is removed: %s", async (_name, sent) => {
    const { token } = standing().gate;
    const { status, seen } = await send(sent(token));
    expect(status).toBe(200);
    expect(valuesOf(seen?.headers ?? [], "x-auth-subject")).toEqual(["alice"]);
    expect(JSON.stringify(seen)).not.toContain(token.slice(-40));
    expect(JSON.stringify(seen)).not.toContain(Buffer.from(token).toString("base64url"));
  });

  it.each(ONE_TOKEN.slice(1, 10))(
    "means nothing on a route that does not use this place: %s",
    async (_name, sent) => {
      const { path = "/any", ...rest } = sent(standing().gate.token);
      const { status } = await send({ ...rest, path: path.replace("/any", "/plain") });
      expect(status).toBe(401);
      expect(standing().backend.seen()).toEqual([]);
    },
  );

  it("leaves everything else unchanged", async () => {
    const { token } = standing().gate;
    const { seen, target } = await send({
      path: `/any?a=%zz&&b=1+2&access_token=${token}&c=/%2F?&=`,
      headers: [
        `Cookie: a="1; 2"; session2=x;session_=y;  SESSION=z; a=%3B`,
        "Sec-WebSocket-Protocol: v1",
      ],
    });
    expect(target).toBe("/any?a=%zz&&b=1+2&c=/%2F?&=");
    expect(valuesOf(seen?.headers ?? [], "cookie")).toEqual([
      `a="1; 2"; session2=x;session_=y;  SESSION=z; a=%3B`,
    ]);
    expect(valuesOf(seen?.headers ?? [], "sec-websocket-protocol")).toEqual(["v1"]);
    const second = await send({
      headers: [`Cookie: a=1; session=${token}; b="x"`, "X_Token: root"],
    });
    expect(valuesOf(second.seen?.headers ?? [], "cookie")).toEqual([`a=1; b="x"`]);
    expect(valuesOf(second.seen?.headers ?? [], "x_token")).toEqual([]);
    const third = await send({ headers: [`Cookie: session=${token}`] });
    expect(valuesOf(third.seen?.headers ?? [], "cookie")).toEqual([]);
    expect((await send({ path: `/any?access_token=${token}` })).target).toBe("/any");
  });

  it("passes over HTTP/1.0, too", async () => {
    const { token } = standing().gate;
    const sent = { version: "1.0", headers: [`Cookie: session=${token}`] };
    expect((await send(sent)).status).toBe(200);
    expect((await send({ ...sent, method: "POST" })).status).toBe(403);
  });
});

const REFUSED: readonly Place[] = [
  ["two cookies", (t) => ({ headers: [`Cookie: session=${t}; session=${t}`] })],
  ["two cookies, the first empty", (t) => ({ headers: [`Cookie: session=; session=${t}`] })],
  ["two Cookie fields", (t) => ({ headers: [`Cookie: session=${t}`, `Cookie: session=${t}`] })],
  ["a cookie in quotes", (t) => ({ headers: [`Cookie: session="${t}"`] })],
  ["an encoded cookie", (t) => ({ headers: [`Cookie: session=%65${t.slice(1)}`] })],
  ["a cookie with the scheme", (t) => ({ headers: [`Cookie: session=Bearer ${t}`] })],
  ["an empty cookie", () => ({ headers: ["Cookie: session="] })],
  ["a cookie without a value", () => ({ headers: ["Cookie: session"] })],
  ["a cookie whose name is in another case", (t) => ({ headers: [`Cookie: Session=${t}`] })],
  ["a cookie within quotes", (t) => ({ headers: [`Cookie: a="; session=${t}"`] })],
  ["a cookie after a comma", (t) => ({ headers: [`Cookie: a=1, session=${t}`] })],
  ["two query fields", (t) => ({ path: `/any?access_token=${t}&access_token=${t}` })],
  [
    "two query fields, one encoded",
    (t) => ({ path: `/any?access_token=${t}&access%5Ftoken=${t}` }),
  ],
  ["two query fields, one empty", (t) => ({ path: `/any?access_token=${t}&access_token` })],
  ["an encoded query value", (t) => ({ path: `/any?access_token=%65${t.slice(1)}` })],
  ["a query value with a space", (t) => ({ path: `/any?access_token=+${t}` })],
  ["an empty query field", () => ({ path: "/any?access_token=" })],
  ["a query field in another case", (t) => ({ path: `/any?Access_Token=${t}` })],
  ["a query field after a semicolon", (t) => ({ path: `/any?a=1;access_token=${t}` })],
  ["a query field in brackets", (t) => ({ path: `/any?access_token[]=${t}` })],
  ["a body field", (t) => ({ method: "POST", headers: [`X: access_token=${t}`] })],
  ["two headers", (t) => ({ headers: [`X-Token: ${t}`, `X-Token: ${t}`] })],
  ["a header that is a list", (t) => ({ headers: [`X-Token: ${t}, ${t}`] })],
  ["two protocols", (t) => ({ headers: [`Sec-WebSocket-Protocol: bearer, ${t}, bearer, ${t}`] })],
  [
    "a protocol and one of Kubernetes",
    (t) => ({ headers: [`Sec-WebSocket-Protocol: bearer, ${t}, ${kubernetes(t)}`] }),
  ],
  [
    "a protocol of Kubernetes alone",
    (t) => ({ headers: [`Sec-WebSocket-Protocol: ${kubernetes(t)}`] }),
  ],
  [
    "a protocol of Kubernetes with padding",
    (t) => ({ headers: [`Sec-WebSocket-Protocol: v1, ${kubernetes(t)}==`] }),
  ],
  ["bearer without a token", () => ({ headers: ["Sec-WebSocket-Protocol: bearer"] })],
  [
    "Authorization and a cookie",
    (t) => ({ headers: [`Authorization: Bearer ${t}`, `Cookie: session=${t}`] }),
  ],
  [
    "Authorization and a query field",
    (t) => ({ path: `/any?access_token=${t}`, headers: [`Authorization: Bearer ${t}`] }),
  ],
  [
    "a cookie and a query field",
    (t) => ({ path: `/any?access_token=${t}`, headers: [`Cookie: session=${t}`] }),
  ],
  [
    "a bad one in Authorization and a good cookie",
    (t) => ({ headers: ["Authorization: Bearer x", `Cookie: session=${t}`] }),
  ],
  [
    "Bearer alone and a good cookie",
    (t) => ({ headers: ["Authorization: Bearer", `Cookie: session=${t}`] }),
  ],
  [
    "a good one and an empty query field",
    (t) => ({ path: "/any?access_token=", headers: [`Authorization: Bearer ${t}`] }),
  ],
  ["a stranger's cookie", () => ({ headers: ["Cookie: session=a.b.c"] })],
];

describe("anything else is 401", () => {
  it.each(REFUSED)("%s", async (_name, sent) => {
    const { status, last } = await send(sent(standing().gate.token));
    expect(status).toBe(401);
    expect(last.header("www-authenticate")).toMatch(
      /^Bearer realm="sallyport"(?:, error="invalid_token")?$/,
    );
    expect(standing().backend.seen()).toEqual([]);
  });

  it("is forwarded without its token if nothing is refused", async () => {
    const { token } = standing().gate;
    const { status, seen, target } = await send({
      path: `/watched?access_token=${token}&access_token=x`,
    });
    expect(status).toBe(200);
    expect(target).toBe("/watched");
    expect(valuesOf(seen?.headers ?? [], "x-auth-subject")).toEqual([]);
  });
});

describe("auth: optional", () => {
  it("accepts a request without a token as anonymous", async () => {
    const { status, seen, last } = await send({
      path: "/optional?a=1",
      headers: ["X-Auth-Subject: root", "Authorization: Basic eA==", "Cookie: a=1"],
    });
    expect(status).toBe(200);
    expect(valuesOf(seen?.headers ?? [], "x-auth-subject")).toEqual([]);
    expect(valuesOf(seen?.headers ?? [], "authorization")).toEqual([]);
    expect(last.header("vary")).toBe("Authorization, X-Token, Cookie");
  });

  it("accepts a valid token, and refuses an invalid one", async () => {
    const { token } = standing().gate;
    const good = await send({ path: "/optional", headers: [`Cookie: session=${token}`] });
    expect(good.status).toBe(200);
    expect(valuesOf(good.seen?.headers ?? [], "x-auth-subject")).toEqual(["alice"]);
    standing().backend.forget();
    const bad = [
      "Cookie: session=x",
      "Authorization: Bearer x",
      "Authorization: Bearer",
      "Cookie: session",
    ];
    for (const header of bad) {
      expect((await send({ path: "/optional", headers: [header] })).status).toBe(401);
    }
    expect(standing().backend.seen()).toEqual([]);
  });
});

describe("a request that the page of another site causes", () => {
  const upgrade = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ];
  const FROM: readonly (readonly [string, readonly string[], boolean])[] = [
    ["this origin", ["Origin: https://localhost"], true],
    ["this origin, with its default port", ["Origin: https://localhost:443"], false],
    ["the same origin", ["Sec-Fetch-Site: same-origin"], true],
    [
      "the same origin, behind a proxy that changes Host",
      ["Sec-Fetch-Site: same-origin", "Origin: https://public.example"],
      true,
    ],
    ["an unknown origin", [], false],
    ["another site", ["Sec-Fetch-Site: cross-site", "Origin: https://evil.example"], false],
    [
      "another site that names this origin",
      ["Sec-Fetch-Site: cross-site", "Origin: https://localhost"],
      false,
    ],
    ["a sibling", ["Sec-Fetch-Site: same-site"], false],
    ["another origin", ["Origin: https://evil.example"], false],
    ["another port", ["Origin: https://localhost:8443"], false],
    ["plain HTTP", ["Origin: http://localhost"], false],
    ["a longer name", ["Origin: https://localhost.evil.example"], false],
    ["a sandbox", ["Origin: null"], false],
    ["two origins", ["Origin: https://localhost", "Origin: https://evil.example"], false],
    ["two origins in one", ["Origin: https://localhost https://evil.example"], false],
    ["two sites", ["Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"], false],
    ["a bookmark", ["Sec-Fetch-Site: none"], false],
    ["an odd word", ["Sec-Fetch-Site: Same-Origin"], false],
    ["with a path", ["Origin: https://localhost/"], false],
  ];

  it.each(FROM)("counts only from here: %s", async (_name, from, allowed) => {
    const { token } = standing().gate;
    const cookie = [`Cookie: session=${token}`, ...from];
    for (const method of ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"]) {
      const { status, last } = await send({ method, headers: cookie });
      expect([method, status]).toEqual([method, allowed ? 200 : 403]);
      if (!allowed) {
        expect(JSON.parse(last.body)["message"]).toBe("This request comes from another site");
      }
    }
    // The raw backend does not support WebSockets: it only gets the request, or not.
    standing().backend.forget();
    const opened = await send({ headers: [...upgrade, ...cookie] });
    expect(opened.status === 403).toBe(!allowed);
    expect(standing().backend.seen()).toHaveLength(allowed ? 1 : 0);
    // Links from anywhere are allowed.
    expect((await send({ headers: cookie })).status).toBe(200);
  });

  it("does not matter where the page must know the token", async () => {
    const { token } = standing().gate;
    const from = ["Sec-Fetch-Site: cross-site", "Origin: https://evil.example"];
    expect((await send({ method: "POST", headers: [...from, `X-Token: ${token}`] })).status).toBe(
      200,
    );
  });

  it("is not refused but anonymous if nothing is refused", async () => {
    const headers = [`Cookie: session=${standing().gate.token}`, "Origin: https://evil.example"];
    const { status, seen } = await send({ method: "POST", path: "/watched", headers });
    expect(status).toBe(200);
    expect(valuesOf(seen?.headers ?? [], "x-auth-subject")).toEqual([]);
    expect(valuesOf(seen?.headers ?? [], "cookie")).toEqual([]);
  });
});

it("a token counts only for its own request on a connection", async () => {
  const { gate, backend } = standing();
  const good = bytesOf({ path: "/cookie", headers: [`Cookie: session=${gate.token}`, ...COOKIE] });
  const none = bytesOf({ path: "/cookie" });
  const plain = bytesOf({ path: "/plain", headers: [`Cookie: session=${gate.token}`] });
  const { responses } = await exchange(gate, [good, none, good, plain].join(""), { responses: 4 });
  expect(responses.map(({ status }) => status)).toEqual([200, 401, 200, 401]);
  expect(backend.seen()).toHaveLength(2);
});

it("an answer for one caller is not for shared caches", async () => {
  const { token } = standing().gate;
  const cached = async (headers: readonly string[], path = "/any"): Promise<string | undefined> =>
    (await send({ path, headers })).last.header("cache-control");
  expect(await cached([`Cookie: session=${token}`])).toBe("private");
  // RFC 9111 §3.5 protects only the responses to requests with `Authorization`.
  expect(await cached([`X-Token: ${token}`])).toBe("private");
  expect(await cached([`X-Token: ${token}`], "/optional")).toBe("private");
  expect(await cached([`X-Token: ${token}`], "/header")).toBe("private");
  expect(await cached([`Authorization: Bearer ${token}`])).toBeUndefined();
  expect(await cached([`Authorization: Bearer ${token}`], "/plain")).toBeUndefined();
  expect(await cached([], "/optional")).toBeUndefined();
});

it("no token is in a log line, a metric or an explanation", async () => {
  const { gate } = standing();
  const { token } = gate;
  for (const [, sent] of [...ONE_TOKEN, ...REFUSED]) await send(sent(token));
  const metrics = await ask({ port: gate.adminPort }, "/metrics");
  const explained = await ask(
    { port: gate.adminPort },
    `/-/explain?url=${encodeURIComponent(`/any?access_token=${token}`)}`,
  );
  expect(explained.status).toBe(200);
  const { token: found, backend } = JSON.parse(explained.body);
  expect(found).toMatchObject({ accepted: true, place: "the query field access_token" });
  expect(backend).toMatchObject({ path: "/any", queryBytes: 0 });
  const written = [JSON.stringify(gate.log()), gate.stderr(), metrics.body, explained.body].join(
    "\n",
  );
  const [head = "", payload = "", signature = ""] = token.split(".");
  for (const part of [`${head}.${payload}`, payload, signature]) {
    expect(written).not.toContain(part);
    expect(written).not.toContain(Buffer.from(part).toString("base64url").slice(4, -4));
  }
  expect(readFileSync(`${gate.directory}/config.yaml`, "utf8")).not.toContain(signature);
});

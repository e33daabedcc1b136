/** Other proxies ask whether a request may pass, and forward it themselves. */
import { connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, ask } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { connectHttp2 } from "../support/http2-client.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  const routes = [
    { name: "public", path: "/public/", auth: "none", upstream: "app" },
    { name: "boss", path: "/boss", require: { groups: { any: ["boss"] } }, upstream: "app" },
    { name: "posts", path: "/posts", methods: ["GET"], auth: "none", upstream: "app" },
    { name: "shop", path: "/", hosts: ["shop.example.com"], auth: "none", upstream: "app" },
    {
      name: "limited",
      path: "/limited",
      auth: "none",
      upstream: "app",
      rateLimit: { requests: 2, within: "1h", by: "address" },
    },
    { name: "everything", path: "/", upstream: "app" },
  ];
  const config = {
    decisions: { from: ["127.0.0.0/8"] },
    browser: {},
    routes,
    server: { http2: true },
  };
  gate = await startSallyport({ target: backend.url, config });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

type Headers = Record<string, string>;

/** What every proxy says. */
const CLIENT = { "X-Forwarded-For": "192.0.2.50" };

/** Asks about a GET as nginx does, with the client's own headers. */
const about = (target: string, headers: Headers = {}, at = gate): Promise<Answer> => {
  const said = { ...CLIENT, "X-Original-URI": target, "X-Original-Method": "GET" };
  return ask(at, "/_sallyport/decide", { headers: { ...said, ...headers } });
};

const bearer = (): Headers => ({ authorization: `Bearer ${gate.token}` });

describe("a question", () => {
  it("is answered with the identity, each header of it", async () => {
    const answer = await about("/orders?x=1", bearer());
    expect(answer).toMatchObject({ status: 200, body: "" });
    expect(answer.headers).toMatchObject({
      "x-auth-subject": "alice",
      "x-auth-groups": "sales",
      "x-auth-issuer": "sallyport",
      "cache-control": "no-store",
      "content-length": "0",
    });
    // That of the proxy says nothing of its client.
    expect(Object.keys(answer.headers).join()).not.toContain("x-auth-client");
    const anonymous = await about("/public/x");
    expect(anonymous.headers).toMatchObject({ "x-auth-subject": "", "x-auth-groups": "" });
    expect(backend.requests).toEqual([]);
  });

  it("is answered no as the client itself would be", async () => {
    expect(await about("/orders")).toMatchObject({
      status: 401,
      headers: { "www-authenticate": 'Bearer realm="sallyport"' },
    });
    expect((await about("/boss", bearer())).status).toBe(403);
    expect((await about("/orders", { authorization: "Bearer x.y.z" })).status).toBe(401);
    const page = await about("/orders", {
      accept: "text/html",
      "sec-fetch-mode": "navigate",
      "sec-fetch-dest": "document",
    });
    expect(page.status).toBe(401);
    expect(page.body).toContain('name="to" value="/orders"');
  });

  it.each<[string, string, Headers, string]>([
    ["nginx", "/_sallyport/decide", { "X-Original-URI": "/posts" }, "X-Original-Method"],
    [
      "Traefik and Caddy",
      "/_sallyport/decide",
      { "X-Forwarded-Uri": "/posts", "X-Forwarded-Host": "a.example" },
      "X-Forwarded-Method",
    ],
    [
      "ingress-nginx",
      "/_sallyport/decide",
      { "X-Original-URL": "https://a.example/posts" },
      "X-Original-Method",
    ],
  ])("of %s names method and target in its own way", async (_who, path, headers, method) => {
    const asked = async (more: Headers) =>
      (await ask(gate, path, { headers: { ...CLIENT, ...headers, ...more } })).status;
    expect(await asked({ [method]: "GET" })).toBe(200);
    expect(await asked({ [method]: "DELETE" })).toBe(401);
    // A method that the proxy does not name could be the client's.
    expect(await asked({})).toBe(400);
  });

  it("of Envoy is the message itself, behind our path", async () => {
    const asked = async (method: string, headers: Headers = {}) =>
      (await ask(gate, "/_sallyport/decide/posts", { method, headers: { ...CLIENT, ...headers } }))
        .status;
    expect(await asked("GET")).toBe(200);
    expect(await asked("DELETE")).toBe(401);
    expect(await asked("DELETE", { "X-Forwarded-Method": "GET" })).toBe(400);
    expect(await asked("GET", { "X-Forwarded-Host": "shop.example.com" })).toBe(400);
    expect(await asked("GET", { "X-Original-URL": "https://shop.example.com/posts" })).toBe(400);
  });

  it("is about the host that was asked for", async () => {
    const traefik = (host: string) =>
      ask(gate, "/_sallyport/decide", {
        headers: {
          ...CLIENT,
          "X-Forwarded-Uri": "/",
          "X-Forwarded-Method": "GET",
          "X-Forwarded-Host": host,
        },
      });
    expect((await traefik("shop.example.com")).status).toBe(200);
    expect((await traefik("other.example.com")).status).toBe(401);
    expect((await about("/", { host: "shop.example.com" })).status).toBe(200);
    // nginx does not set it, so it is the client's.
    expect((await about("/", { "X-Forwarded-Host": "shop.example.com" })).status).toBe(400);
  });

  it("is no for gRPC in a status that is no yes", async () => {
    await using client = await connectHttp2(gate);
    for (const path of ["/_sallyport/decide/orders", "/_sallyport/decide"]) {
      const grpc = { ":method": "POST", "content-type": "application/grpc", te: "trailers" };
      const answer = await client.ask(
        { ":path": path, ...grpc, "x-forwarded-for": "192.0.2.1" },
        "",
      );
      expect(answer.status).toBeGreaterThanOrEqual(400);
    }
  });

  it("ends its connection if it declares a body", async () => {
    const body = { method: "POST", headers: { ...CLIENT, "content-length": "3" }, body: "abc" };
    const answer = await ask(gate, "/_sallyport/decide/public/x", body);
    expect(answer).toMatchObject({ status: 200, headers: { connection: "close" } });
    const large = { ...CLIENT, "content-length": "20000000", "X-Original-URI": "/public/x" };
    const head = Object.entries({ ...large, "X-Original-Method": "POST", Host: "localhost" });
    const lines = head.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    const socket = await connectTls(gate);
    socket.write(`GET /_sallyport/decide HTTP/1.1\r\n${lines}\r\n`);
    const answered = await readUntilEnd(socket);
    expect(answered).toMatch(/^HTTP\/1\.1 413 /);
  });

  it("counts against the limits of the client, not of the proxy", async () => {
    const from = (client: string) => about("/limited", { "X-Forwarded-For": client });
    const statuses = [];
    for (const client of ["192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.9"]) {
      statuses.push((await from(client)).status);
    }
    expect(statuses).toEqual([200, 200, 429, 200]);
  });

  it("stands in the log and the metrics as the request that it is about", async () => {
    const put = { "X-Original-Method": "PUT", "X-Forwarded-For": "192.0.2.77" };
    await about("/public/asked?token=secret", put);
    await expect.poll(gate.log).toContainEqual(
      expect.objectContaining({
        msg: "request",
        source: "decision",
        method: "PUT",
        path: "/public/asked",
        client: "192.0.2.77",
        route: "public",
        status: 200,
      }),
    );
    const counted = (await scrape(gate)).sum("sallyport_http_requests_total", 'route="public"');
    expect(counted).toBeGreaterThan(0);
  });

  it("with the cookie of a session is about a browser", async () => {
    const form = {
      "content-type": "application/x-www-form-urlencoded",
      "sec-fetch-site": "same-origin",
    };
    const body = new URLSearchParams({
      username: "alice",
      password: "correct horse battery staple",
    });
    const login = await ask(gate, "/_sallyport/login", {
      method: "POST",
      headers: form,
      body: body.toString(),
    });
    const cookie = login.headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
    expect((await about("/orders", { cookie })).status).toBe(200);
    const post = { cookie, "X-Original-Method": "POST" };
    expect((await about("/orders", post)).status).toBe(403);
    expect((await about("/orders", { ...post, "sec-fetch-site": "same-origin" })).status).toBe(200);
    // A handshake of which the proxy keeps some fields alone.
    for (const field of [
      { "sec-websocket-key": "x" },
      { "sec-websocket-version": "13" },
      { "sec-fetch-mode": "websocket", "sec-fetch-site": "cross-site" },
    ]) {
      const handshake = { cookie, origin: "https://evil.example", ...field };
      expect((await about("/orders", handshake as Headers)).status).toBe(403);
    }
  });
});

describe("no question is answered yes", () => {
  const forged: [string, string, Headers][] = [
    ["without a target", "/_sallyport/decide", {}],
    [
      "with two targets",
      "/_sallyport/decide",
      { "X-Original-URI": "/orders", "X-Forwarded-Uri": "/public/x" },
    ],
    [
      "with a target beside another path",
      "/_sallyport/decide/public/x",
      { "X-Original-URI": "/orders" },
    ],
    [
      "with a URL of another target",
      "/_sallyport/decide",
      { "X-Original-URI": "/public/x", "X-Original-URL": "https://a.example/orders" },
    ],
    [
      "with two methods",
      "/_sallyport/decide",
      { "X-Original-URI": "/posts", "X-Original-Method": "DELETE", "X-Forwarded-Method": "GET" },
    ],
    [
      "with a URL of another host",
      "/_sallyport/decide",
      { "X-Original-URL": "https://a.example/", "X-Forwarded-Host": "shop.example.com" },
    ],
    ["with a target that is none", "/_sallyport/decide", { "X-Original-URI": "public" }],
    [
      "with a target of another host",
      "/_sallyport/decide",
      { "X-Original-URI": "//evil.example/public/x" },
    ],
    [
      "with an absolute target",
      "/_sallyport/decide",
      { "X-Original-URI": "http://localhost/public/x" },
    ],
    ["with dot segments", "/_sallyport/decide", { "X-Original-URI": "/public/../orders" }],
    [
      "with encoded dot segments",
      "/_sallyport/decide",
      { "X-Original-URI": "/public/%2e%2e/orders" },
    ],
    ["with an encoded slash", "/_sallyport/decide", { "X-Original-URI": "/public/..%2forders" }],
    ["with a backslash", "/_sallyport/decide", { "X-Original-URI": "/public\\..\\orders" }],
    ["with an unnecessary encoding", "/_sallyport/decide", { "X-Original-URI": "/%70ublic/x" }],
    ["with two slashes", "/_sallyport/decide", { "X-Original-URI": "/public//x" }],
    ["with a fragment", "/_sallyport/decide", { "X-Original-URI": "/public/x#/../orders" }],
    ["with dot segments behind our path", "/_sallyport/decide/public/../orders", {}],
    [
      "with a method that is none",
      "/_sallyport/decide",
      { "X-Original-URI": "/public/x", "X-Original-Method": "G ET" },
    ],
    [
      "with an ambiguous host",
      "/_sallyport/decide",
      { "X-Original-URI": "/public/x", "X-Forwarded-Host": "a b" },
    ],
    [
      "about our own endpoint",
      "/_sallyport/decide",
      { "X-Original-URI": "/api/v1/version", authorization: "" },
    ],
    ["about our own path", "/_sallyport/decide", { "X-Original-URI": "/_sallyport/login" }],
    [
      "with a target that no request line holds",
      "/_sallyport/decide",
      { "X-Original-URI": "/public/x?, /orders" },
    ],
    [
      "with a client that is none",
      "/_sallyport/decide",
      { "X-Original-URI": "/public/x", "X-Forwarded-For": "203.0.113.5, unknown" },
    ],
    [
      "with an empty client",
      "/_sallyport/decide",
      { "X-Original-URI": "/public/x", "X-Forwarded-For": "" },
    ],
    [
      "with another spelling of an identity header",
      "/_sallyport/decide",
      { "X-Original-URI": "/public/x", X_Auth_Subject: "root" },
    ],
    [
      "with an identity header where there is no identity",
      "/_sallyport/decide",
      { "X-Original-URI": "/public/x", "X-Auth-Subject": "root" },
    ],
    [
      "with the subject of a certificate",
      "/_sallyport/decide",
      { "X-Original-URI": "/public/x", "X-Auth-Client-Subject": "CN=root" },
    ],
    [
      "with the SPIFFE ID of a certificate",
      "/_sallyport/decide",
      { "X-Original-URI": "/public/x", "X-Auth-Client-Spiffe-Id": "spiffe://a/b" },
    ],
    ["about a question", "/_sallyport/decide", { "X-Original-URI": "/_sallyport/decide/public/x" }],
  ];

  it.each(forged)("%s", async (_what, path, given) => {
    const method = "X-Original-URI" in given || "X-Original-URL" in given;
    const headers = { ...CLIENT, ...(method ? { "X-Original-Method": "GET" } : {}), ...given };
    const answer = await ask(gate, path, { headers });
    expect([400, 401, 404, 405]).toContain(answer.status);
    expect(answer.body).not.toMatch(/evil|orders/);
  });

  it("if it comes twice in one field", async () => {
    const answer = await ask(gate, "/_sallyport/decide", {
      headers: {
        ...CLIENT,
        "X-Original-Method": "GET",
        "X-Original-URI": ["/public/x", "/orders"] as unknown as string,
      },
    });
    expect(answer.status).toBe(400);
  });

  it("from a stranger, whatever it says of itself", async () => {
    const config = {
      decisions: { from: ["192.0.2.0/24"] },
      server: { trustedProxies: ["127.0.0.0/8"] },
    };
    await using own = await startSallyport({ target: backend.url, config });
    const headers = { "X-Forwarded-For": "192.0.2.1", authorization: `Bearer ${own.token}` };
    expect((await about("/orders", headers, own)).status).toBe(403);
    expect((await about("/public/x", headers, own)).status).toBe(403);
    // Our own path reaches no backend.
    expect((await ask(own, "/_SALLYPORT/decide", { token: own.token })).status).toBe(403);
    for (const path of ["/_sallyport/x", "/_sallyport"]) {
      expect((await ask(own, path, { token: own.token })).status).toBe(404);
    }
  });
});

it("the client is who stands before all proxies, also those that may not ask", async () => {
  const routes = [
    { name: "inside", path: "/", auth: "none", allow: ["10.0.0.0/8"], upstream: "app" },
  ];
  const config = {
    decisions: { from: ["127.0.0.0/8"] },
    routes,
    server: { trustedProxies: ["10.0.0.0/8"] },
  };
  await using own = await startSallyport({ target: backend.url, config });
  const from = async (list: string) => (await about("/", { "X-Forwarded-For": list }, own)).status;
  expect(await from("203.0.113.5, 10.0.0.7")).toBe(403);
  expect(await from("10.0.0.7")).toBe(200);
});

function connectTls({ port, ca }: Sallyport): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const socket = connect({ port, ca, host: "127.0.0.1", servername: "localhost" });
  socket.once("secureConnect", () => resolve(socket)).once("error", reject);
  return promise;
}

async function readUntilEnd(socket: TLSSocket): Promise<string> {
  let read = "";
  for await (const chunk of socket) read += String(chunk);
  return read;
}

/** An attacker has found each of these. */
describe("a hostile client of a proxy that asks", () => {
  it.each<[string, Headers]>([
    ["/_sallyport/decide//orders", {}],
    ["/_sallyport/decide/x/../orders", {}],
    ["/_sallyport/decide/a%2forders", {}],
    ["/_sallyport/decide/orders;x", {}],
    ["/_sallyport/decide/orders", { expect: "x" }],
    ["/_sallyport/decide/orders", { "cdn-loop": "sallyport-x,".repeat(12) }],
    ["/_sallyport/decide/orders", { "x-large": "a".repeat(30_000) }],
    ["/_sallyport/Decide/orders", {}],
    ["/_sallyport/decidex", {}],
  ])("gets no 200 for a refusal because it speaks gRPC: %s", async (path, more) => {
    await using client = await connectHttp2(gate);
    const grpc = { ":method": "POST", "content-type": "application/grpc", ...CLIENT };
    const { status } = await client.ask({ ":path": path, ...grpc, ...more }, "");
    expect(status).toBeGreaterThanOrEqual(400);
  });

  it.each<[string, Headers]>([
    ["X-Original-URL", { "x-original-url": "http://shop.example.com/orders" }],
    [
      "X-Forwarded-*",
      {
        "x-forwarded-uri": "/orders",
        "x-forwarded-method": "GET",
        "x-forwarded-host": "shop.example.com",
      },
    ],
  ])("does not choose the host by %s", async (_what, more) => {
    expect((await about("/orders", { host: "internal.example.com", ...more })).status).toBe(400);
  });

  it.each([
    ...["X-HTTP-Method-Override", "X-HTTP-Method", "X-Rewrite-URL", "X-Original-Path", "Proxy"],
    ...["X_Original_URL", "X.Original.URI", "X_Forwarded_Uri", "X-Rewrite_URL"],
    ...["Remote-User", "X-Remote-User", "X-Forwarded-User", "X-Auth-Request-Email"],
  ])("sends no %s past us", async (name) => {
    expect((await about("/public/x", { [name]: "DELETE" })).status).toBe(400);
  });

  it.each(["CONNECT", "TRACE"])("opens no tunnel, and asks for no echo, by %s", async (method) => {
    expect((await about("/public/x", { "X-Original-Method": method })).status).toBe(405);
  });

  it("gets no header through that we would drop", async () => {
    const config = {
      decisions: { from: ["127.0.0.0/8"] },
      server: { underscoreHeaders: "drop" },
      routes: [{ name: "all", path: "/", auth: "none", upstream: "app" }],
    };
    await using own = await startSallyport({ target: backend.url, config });
    expect((await about("/x", { "X-Auth_Subject": "root" }, own)).status).toBe(400);
    expect((await about("/x", {}, own)).status).toBe(200);
  });

  it("ends its connection with a body that is declared and refused", async () => {
    const headers = { "content-length": "3", "cdn-loop": "sallyport-x,".repeat(12) };
    const answer = await ask(gate, "/_sallyport/decide", { headers, body: "abc" });
    expect(answer).toMatchObject({ status: 508, headers: { connection: "close" } });
  });
});

it("lets no question reach a backend where nobody may ask", async () => {
  await using own = await startSallyport({ target: backend.url, config: {} });
  const before = backend.requests.length;
  for (const path of ["/_sallyport/decide", "/_sallyport/decide/x", "/_SALLYPORT/decide"]) {
    expect((await ask(own, path, { token: own.token })).status).toBe(404);
  }
  expect(backend.requests.length).toBe(before);
  expect((await ask(own, "/_sallyport/other", { token: own.token })).status).toBe(200);
});

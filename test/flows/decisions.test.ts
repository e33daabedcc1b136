/** Other proxies ask whether a request may pass, and forward it themselves. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Answer, ask } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
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
      ...{ name: "limited", path: "/limited", auth: "none", upstream: "app" },
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

/** Asks about a request as nginx does, with the client's own headers. */
const about = (target: string, headers: Headers = {}, at = gate): Promise<Answer> =>
  ask(at, "/_sallyport/decide", { headers: { "X-Original-URI": target, ...headers } });

const bearer = (): Headers => ({ authorization: `Bearer ${gate.token}` });

describe("a question", () => {
  it("is answered with the identity, each header of it", async () => {
    const answer = await about("/orders?x=1", bearer());
    expect(answer).toMatchObject({ status: 200, body: "" });
    expect(answer.headers).toMatchObject({
      ...{ "x-auth-subject": "alice", "x-auth-groups": "sales", "x-auth-issuer": "sallyport" },
      ...{ "x-auth-client-subject": "", "cache-control": "no-store", "content-length": "0" },
    });
    const anonymous = await about("/public/x", { "X-Auth-Subject": "root" });
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
      ...{ accept: "text/html", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
    });
    expect(page.status).toBe(401);
    expect(page.body).toContain('name="to" value="/orders"');
  });

  it.each<[string, string, Headers]>([
    ["nginx", "/_sallyport/decide", { "X-Original-URI": "/posts", "X-Original-Method": "DELETE" }],
    [
      "Traefik",
      "/_sallyport/decide",
      { "X-Forwarded-Uri": "/posts", "X-Forwarded-Method": "DELETE" },
    ],
    [
      "ingress-nginx",
      "/_sallyport/decide",
      { "X-Original-URL": "https://a.example/posts", "X-Original-Method": "DELETE" },
    ],
    ["Envoy", "/_sallyport/decide/posts", { "X-Forwarded-Method": "DELETE" }],
  ])("of %s names method and target in its own way", async (_who, path, headers) => {
    expect((await ask(gate, path, { headers })).status).toBe(401);
    const get = Object.fromEntries(
      Object.entries(headers).filter(([name]) => !/method/i.test(name)),
    );
    expect((await ask(gate, path, { headers: get })).status).toBe(200);
  });

  it("takes the method of the message where no field names one", async () => {
    expect((await ask(gate, "/_sallyport/decide/posts", { method: "DELETE" })).status).toBe(401);
  });

  it("is about the host that was asked for", async () => {
    expect((await about("/", { "X-Forwarded-Host": "shop.example.com" })).status).toBe(200);
    expect((await about("/", { host: "shop.example.com" })).status).toBe(200);
    expect((await about("/", { "X-Forwarded-Host": "other.example.com" })).status).toBe(401);
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
    await about("/public/asked?token=secret", {
      "X-Original-Method": "PUT",
      "X-Forwarded-For": "192.0.2.77",
    });
    await expect.poll(gate.log).toContainEqual(
      expect.objectContaining({
        ...{ msg: "request", source: "decision", method: "PUT", path: "/public/asked" },
        ...{ client: "192.0.2.77", route: "public", status: 200 },
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
    // A handshake of which the proxy keeps these fields alone.
    const handshake = { cookie, "sec-websocket-key": "x", origin: "https://evil.example" };
    expect((await about("/orders", handshake)).status).toBe(403);
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
    ["about a question", "/_sallyport/decide", { "X-Original-URI": "/_sallyport/decide/public/x" }],
  ];

  it.each(forged)("%s", async (_what, path, headers) => {
    const answer = await ask(gate, path, { headers });
    expect([400, 401, 404, 405]).toContain(answer.status);
    expect(answer.body).not.toMatch(/evil|orders/);
  });

  it("if it comes twice in one field", async () => {
    const answer = await ask(gate, "/_sallyport/decide", {
      headers: { "X-Original-URI": ["/public/x", "/orders"] as unknown as string },
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
    for (const path of ["/_sallyport/x", "/_SALLYPORT/decide", "/_sallyport"]) {
      expect((await ask(own, path, { token: own.token })).status).toBe(404);
    }
  });
});

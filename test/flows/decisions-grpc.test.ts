/** Envoy asks over gRPC whether a request may pass: `envoy.service.auth.v3.Authorization/Check`. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { CheckClient, type CheckedRequest, shortly } from "../support/check-client.ts";
import { connectHttp2 } from "../support/http2-client.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";

/** Nothing listens there: nothing is forwarded. */
const NOWHERE = "http://127.0.0.1:9";

let gate: Sallyport;
let client: CheckClient;
beforeAll(async () => {
  const routes = [
    { name: "public", path: "/public/", auth: "none" },
    { name: "boss", path: "/boss", require: { groups: { any: ["boss"] } } },
    { name: "shop", path: "/", hosts: ["shop.example.com"], auth: "none" },
    { name: "query", path: "/query", tokenFrom: [{ query: "access_token" }] },
    {
      name: "limited",
      path: "/limited",
      auth: "none",
      rateLimit: { requests: 2, within: "1h", by: "address" },
    },
    {
      name: "small",
      path: "/small",
      auth: "none",
      limits: { bodyBytes: "10B" },
      requestHeaders: { set: { "X-Tier": "gold" }, remove: ["X-Internal"] },
    },
    { name: "everything", path: "/" },
  ];
  const config = {
    decisions: { from: ["127.0.0.0/8"], grpc: true, only: true },
    browser: {},
    routes,
    upstreams: undefined,
    server: { http2: true },
  };
  gate = await startSallyport({ target: NOWHERE, config });
  client = new CheckClient(gate);
});
afterAll(async () => {
  await client[Symbol.asyncDispose]();
  await gate.close();
});

const check = async (request: CheckedRequest) => shortly(await client.check(request, 30_000));
const bearer = (): Record<string, string> => ({ authorization: `Bearer ${gate.token}` });

/** The identity headers, which no client may choose. */
const IDENTITY = [
  ...["x-auth-client-dns-names", "x-auth-client-spiffe-id", "x-auth-client-subject"],
  ...["x-auth-groups", "x-auth-issuer", "x-auth-subject"],
];

describe("a check", () => {
  it("overwrites the identity, removes the token, and tells both to filters behind", async () => {
    const forged = {
      "x-auth-subject": "root",
      "x-auth-client-subject": "CN=root",
      x_auth_groups: "boss",
      "remote-user": "root",
      "x-http-method-override": "DELETE",
      accept: "*/*",
    };
    const answer = await check({ path: "/orders?x=1", headers: { ...bearer(), ...forged } });
    expect(answer).toMatchObject({
      code: 0,
      headers: {
        "x-auth-subject": "alice",
        "x-auth-groups": "sales",
        "x-auth-issuer": "sallyport",
      },
      metadata: { subject: "alice", groups: ["sales"], issuer: "sallyport" },
    });
    expect(answer.removed).toEqual([
      ...["authorization", "remote-user", "x-auth-client-dns-names", "x-auth-client-spiffe-id"],
      ...["x-auth-client-subject", "x-http-method-override"],
      "x_auth_groups",
    ]);
  });

  it("removes every identity header that has no value, even one that it was not shown", async () => {
    expect(await check({ path: "/public/x" })).toEqual({
      code: 0,
      headers: {},
      removed: IDENTITY,
      queries: [],
      metadata: undefined,
    });
  });

  it.each([
    ...["x-original-url", "x_original_url", "x-original-uri", "x-forwarded-uri", "x-rewrite-url"],
    ...["x-original-method", "x-forwarded-method", "x-http-method-override", "x-forwarded-host"],
    ...["proxy", "proxy-authorization", "x-real-ip", "forwarded", "x_forwarded_for", "x_real_ip"],
    ...["remote-user", "x_auth_subject", "x-auth_subject", "x_remote_user"],
  ])("lets no %s of the client reach the backend", async (name) => {
    const { removed } = await check({ path: "/public/x", headers: { [name]: "/admin" } });
    expect(removed).toContain(name);
  });

  it("touches nothing that Envoy writes itself, or that is the client's own", async () => {
    const own = {
      "x-request-id": "1",
      "x-forwarded-for": "192.0.2.9",
      "x-forwarded-proto": "https",
      te: "trailers",
      traceparent: "00-1-2-01",
      "user-agent": "x",
      "content-length": "0",
    };
    expect(await check({ path: "/public/x", headers: own })).toMatchObject({
      code: 0,
      headers: {},
      removed: IDENTITY,
    });
  });

  it("is denied with what the client would get from us", async () => {
    expect(await check({ path: "/orders" })).toMatchObject({
      code: 16,
      denied: 401,
      headers: {
        "www-authenticate": 'Bearer realm="sallyport"',
        "content-type": "application/json",
      },
      body: expect.stringContaining("Full authentication is required"),
    });
    expect(await check({ path: "/boss", headers: bearer() })).toMatchObject({
      code: 7,
      denied: 403,
    });
    const people = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
    const page = await check({ path: "/orders?x", headers: people });
    expect(page).toMatchObject({ denied: 401, headers: { "content-type": /^text\/html/ } });
    expect(page.body).toContain('name="to" value="/orders?x"');
  });

  it("is about the host, the method and the client that Envoy names", async () => {
    expect(await check({ host: "shop.example.com" })).toMatchObject({ code: 0 });
    const asked = { path: "/limited" };
    const results: (number | undefined)[] = [];
    for (const source of ["192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2"]) {
      // What the client says of itself is left of what Envoy sees.
      const headers = { "x-forwarded-for": `198.51.100.${results.length}` };
      results.push((await check({ ...asked, source, headers })).code);
    }
    expect(results).toEqual([0, 0, 8, 0]);
    expect(
      await check({ path: "/small", method: "POST", headers: { "content-length": "11" } }),
    ).toMatchObject({ denied: 413 });
  });

  it("makes the changes of the route", async () => {
    const answer = await check({
      path: "/small",
      headers: { "x-tier": "free", "x-internal": "1" },
    });
    expect(answer.headers).toEqual({ "x-tier": "gold" });
    expect(answer.removed).toContain("x-internal");
    const query = await check({ path: `/query?a=1&%61ccess_token=${gate.token}` });
    expect(query).toMatchObject({ code: 0, queries: ["%61ccess_token"] });
  });

  it("removes the session, and no other cookie", async () => {
    const cookie = `a=1; __Host-sallyport=${gate.token}; b=2`;
    const answer = await check({ path: "/orders", headers: { cookie } });
    expect(answer).toMatchObject({ code: 0, headers: { cookie: "a=1; b=2" } });
    const alone = await check({
      path: "/orders",
      rawHeaders: [["cookie", Buffer.from(`__Host-sallyport=${gate.token}`)]],
    });
    expect(alone.removed).toContain("cookie");
    const foreign = { cookie, "sec-fetch-site": "cross-site" };
    const denied = await check({ path: "/orders", method: "POST", headers: foreign });
    expect(denied).toMatchObject({ denied: 403 });
  });

  it.each<[string, CheckedRequest]>([
    ["another path among the fields", { headers: { ":path": "/public/y" } }],
    ["another method among the fields", { headers: { ":method": "HEAD" } }],
    ["another host among the fields", { headers: { host: "shop.example.com" } }],
    ["a path with two readings", { path: "/public/../orders" }],
    ["a path with two slashes", { path: "//public/x" }],
    ["no path", { path: "" }],
    ["an absolute target", { path: "http://app.example.com/public/x" }],
    ["a fragment", { path: "/public/x#y" }],
    ["a host with a blank", { host: "shop.example.com x" }],
    ["no client", { source: "" }],
    ["a client that names itself", { source: "", headers: { "x-forwarded-for": "192.0.2.1" } }],
  ])("of %s is denied", async (_what, request) => {
    expect(await check({ path: "/public/x", ...request })).toMatchObject({ denied: 400 });
  });

  it.each<[string, Record<string, string>]>([
    ["a line break in a value", { "x-a": "1\r\nx-auth-subject: root" }],
    ["a name in upper case", { "X-A": "1" }],
    ["an empty name", { "": "1" }],
    ["cookies that Envoy has joined", { cookie: "a=1,__Host-sallyport=x" }],
  ])("with %s is denied", async (_what, headers) => {
    expect(await check({ path: "/public/x", headers })).toMatchObject({ code: 13, denied: 400 });
  });

  it.each(["CONNECT", "TRACE"])("about %s, which we do not forward, is denied", async (method) => {
    expect(await check({ path: "/public/x", method })).toMatchObject({ denied: 405 });
  });

  it("with a name that objects have is about a header", async () => {
    const headers = JSON.parse('{ "constructor": "1", "__proto__": "1" }') as Record<
      string,
      string
    >;
    expect(await check({ path: "/public/x", headers })).toMatchObject({ code: 0 });
  });

  it("that is no message, or too large, is denied, and nothing of it is repeated", async () => {
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`x-${i}`, "1"]));
    expect(await check({ path: "/public/x", headers: many })).toMatchObject({ denied: 431 });
    for (const bytes of [Buffer.alloc(0), Buffer.from("secret"), Buffer.alloc(100, 0xff)]) {
      const answer = shortly(await client.send(bytes));
      expect(answer).toMatchObject({ code: 13, denied: 400 });
      expect(JSON.stringify(answer)).not.toContain("secret");
    }
    expect(shortly(await client.send(Buffer.alloc(200_000)))).toMatchObject({ denied: 413 });
  });

  it("over HTTP/1.1, or without the type of gRPC, is not answered yes", async () => {
    const path = "/envoy.service.auth.v3.Authorization/Check";
    expect((await ask(gate, path, { method: "POST", body: "x" })).status).toBe(404);
    await using http2 = await connectHttp2(gate);
    expect((await http2.ask({ ":path": path, ":method": "POST" }, "x")).status).toBe(404);
  });

  it("is counted and logged as a decision about the request", async () => {
    await check({ path: "/public/counted?secret=1", source: "192.0.2.77" });
    await expect.poll(gate.log).toContainEqual(
      expect.objectContaining({
        source: "decision",
        method: "GET",
        status: 200,
        client: "192.0.2.77",
        route: "public",
        host: "app.example.com",
      }),
    );
    const counted = (await scrape(gate)).sum("sallyport_http_requests_total", 'route="public"');
    expect(counted).toBeGreaterThan(0);
  });
});

it("answers thousands of checks over one connection", async () => {
  const many = Array.from({ length: 2_000 }, (_, i) =>
    check({ path: `/orders/${i}`, headers: bearer() }),
  );
  expect((await Promise.all(many)).every(({ code }) => code === 0)).toBe(true);
});

it("forwards nothing where only decisions are made", async () => {
  for (const token of [undefined, gate.token]) {
    const answer = await ask(gate, "/public/x", token === undefined ? {} : { token });
    expect(answer.status).toBe(404);
  }
  expect((await ask(gate, "/orders")).status).toBe(401);
});

it("refuses strangers", async () => {
  const config = {
    decisions: { from: ["192.0.2.0/24"], grpc: true },
    server: { http2: true },
  };
  await using own = await startSallyport({ target: NOWHERE, config });
  await using stranger = new CheckClient(own);
  await expect(stranger.check({ path: "/" })).rejects.toMatchObject({ code: 7 });
});

it("removes what the policy on underscores would drop", async () => {
  const config = {
    decisions: { from: ["127.0.0.0/8"], grpc: true },
    server: { http2: true, underscoreHeaders: "drop" },
    routes: [{ name: "all", path: "/", auth: "none", upstream: "app" }],
  };
  await using own = await startSallyport({ target: NOWHERE, config });
  await using asker = new CheckClient(own);
  const answer = shortly(await asker.check({ headers: { x_auth_subject: "root", x_any: "1" } }));
  expect(answer.removed).toEqual(expect.arrayContaining(["x_auth_subject", "x_any"]));
});

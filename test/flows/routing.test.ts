import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, fieldsOf } from "../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { echoedBy } from "../support/echoed.ts";
import { logLine } from "../support/log-line.ts";
import { exchange, request, type Exchange } from "../support/raw-client.ts";
import { ALICE, cheapHash, startSallyport, type Sallyport } from "../support/sallyport.ts";

const routes = [
  { name: "public", path: "/public/", auth: "none", upstream: "app" },
  { name: "orders", path: "/api/orders", upstream: "app", rewrite: { stripPrefix: "/api" } },
  { name: "order-list", exact: "/api/orders/list", upstream: "app" },
  { name: "orders-write", path: "/api/orders", methods: ["POST"], upstream: "app" },
  { name: "moved", path: "/old", upstream: "app", rewrite: { addPrefix: "/v2/legacy" } },
  {
    name: "swapped",
    path: "/a/b",
    upstream: "app",
    rewrite: { stripPrefix: "/a/b", addPrefix: "/c" },
  },
  { name: "shop", hosts: ["shop.example.com"], path: "/", upstream: "app" },
  { name: "tenants", hosts: ["*.example.com"], path: "/", upstream: "app" },
  {
    name: "any-group",
    path: "/any",
    require: { groups: { any: ["x", "sales"] } },
    upstream: "app",
  },
  {
    name: "all-groups",
    path: "/all",
    require: { groups: { all: ["sales", "admin"] } },
    upstream: "app",
  },
  {
    name: "both",
    path: "/both",
    require: { groups: { all: ["sales"], any: ["boss", "admin"] } },
    upstream: "app",
  },
  { name: "kept", path: "/kept", forwardAuthorization: "keep", upstream: "app" },
  { name: "rest", path: "/rest", upstream: "app" },
];
const users = {
  alice: { password: cheapHash(ALICE.password), groups: ["sales", "admin"] },
  sam: { password: cheapHash("sam's own"), groups: ["sales"] },
  eve: { password: cheapHash("eve's own") },
};

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await startSallyport({
    target: backend.url,
    config: { routes },
    files: { "users.yaml": JSON.stringify({ users }) },
  });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

async function routeOf(method: string, path: string, host = "localhost"): Promise<unknown> {
  const requestId = `route-${routeNumber++}`;
  const headers = { host, "x-request-id": requestId };
  await ask(gate, path, { method, token: gate.token, headers });
  return (await logLine(gate, { msg: "request", request_id: requestId }))["route"];
}
let routeNumber = 0;

describe("the most specific route matches", () => {
  it.each([
    ["GET", "/api/orders", "localhost", "orders"],
    ["GET", "/api/orders/7", "localhost", "orders"],
    ["POST", "/api/orders/7", "localhost", "orders-write"],
    ["GET", "/api/orders/list", "localhost", "order-list"],
    ["GET", "/api/orders/list/7", "localhost", "orders"],
    ["GET", "/api/ordersx", "localhost", "none"],
    ["GET", "/api/ordersx", "shop.example.com", "shop"],
    ["GET", "/x", "SHOP.example.com:8443", "shop"],
    ["GET", "/x", "tenant.example.com", "tenants"],
    ["GET", "/x", "a.tenant.example.com", "none"],
    ["GET", "/x", "example.com", "none"],
    ["GET", "/rest", "localhost", "rest"],
  ])("%s %s of %s: %s", async (method, path, host, route) => {
    expect(await routeOf(method, path, host)).toBe(route);
  });
});

describe("a request without a route", () => {
  it("gets 404 with a token and 401 without", async () => {
    const found = await ask(gate, "/nowhere", { token: gate.token });
    expect(found.status).toBe(404);
    expect(fieldsOf(found)).toMatchObject({ success: false, id: expect.any(Number) });
    expect(found.headers["proxy-status"]).toBeUndefined();
    expect((await ask(gate, "/nowhere")).status).toBe(401);
    expect((await ask(gate, "/nowhere", { token: "bad" })).status).toBe(401);
  });
});

describe("the target that the backend gets", () => {
  function get(target: string): Promise<Exchange> {
    const lines = [`GET ${target} HTTP/1.1`, "Host: localhost"];
    return exchange(gate, request([...lines, `Authorization: Bearer ${gate.token}`]));
  }

  it.each([
    ["/rest/a%20b/%C3%A9?q=%20+%2F&&=;?x"],
    ["/rest/?"],
    ["/rest?a=../..//x&b=%2e%2e&c=\\|{}"],
    ["/rest/a:b@c=d,2!$&'()*+~"],
  ])("is what the client sent, byte for byte: %s", async (target) => {
    const { last } = await get(target);
    expect(last.status).toBe(200);
    expect(echoedBy(last).url).toBe(target);
  });

  it.each([
    ["/re%73t/%7euser/%c3%a9?%7e%c3", "/rest/~user/%C3%A9?%7e%c3"],
    ["/%72est", "/rest"],
  ])("is the normalized path that the route was matched with: %s", async (target, url) => {
    const { last } = await get(target);
    expect(last.status).toBe(200);
    expect(echoedBy(last).url).toBe(url);
  });

  it.each([
    ["/api/orders/7?x=%20", "/orders/7?x=%20"],
    ["/api/orders", "/orders"],
    ["/api/orders/", "/orders/"],
    ["/old/a%20b?c", "/v2/legacy/old/a%20b?c"],
    ["/a/b", "/c/"],
    ["/a/b/d/?e", "/c/d/?e"],
  ])("has its prefix stripped and another added: %s", async (path, url) => {
    expect(echoedBy(await ask(gate, path, { token: gate.token })).url).toBe(url);
  });

  it("comes with the method, the host and the body", async () => {
    const body = Buffer.from("füñf");
    const headers = { host: "shop.example.com:1234", "content-type": "text/x" };
    const answer = await ask(gate, "/x", { method: "PATCH", token: gate.token, headers, body });
    const echoed = echoedBy(answer);
    expect(echoed.method).toBe("PATCH");
    expect(echoed.bodyLength).toBe(body.length);
    expect(echoed.header("host")).toBe("shop.example.com:1234");
    expect(echoed.header("content-length")).toBe(String(body.length));
    expect(echoed.header("content-type")).toBe("text/x");
  });
});

describe("a public route", () => {
  it.each([
    ["no token", {}],
    ["a bad token", { authorization: "Bearer bad" }],
  ])("accepts %s, and the backend gets no identity", async (_name, headers) => {
    const answer = await ask(gate, "/public/x", { headers });
    expect(answer.status).toBe(200);
    expect(echoedBy(answer).header("x-auth-subject")).toBeUndefined();
    expect(echoedBy(answer).header("authorization")).toBeUndefined();
  });
});

describe("a route that requires groups", () => {
  it.each([
    ["alice", "/any", 200],
    ["sam", "/any", 200],
    ["eve", "/any", 403],
    ["alice", "/all", 200],
    ["sam", "/all", 403],
    ["alice", "/both", 200],
    ["sam", "/both", 403],
  ])("gives %s at %s: %i", async (user, path, status) => {
    const password = user === "alice" ? ALICE.password : `${user}'s own`;
    const token = await gate.login(user, password);
    const answer = await ask(gate, path, { token });
    expect(answer.status).toBe(status);
    if (status === 403) {
      expect(answer.headers["www-authenticate"]).toMatch(/^Bearer .*error="insufficient_scope"$/);
      expect(fieldsOf(answer)).toMatchObject({ success: false });
      const line = await logLine(gate, { id: fieldsOf(answer)["id"] });
      expect(line).toMatchObject({ auth: "denied", reason: "forbidden", subject: user });
    }
  });

  it("requires a token first", async () => {
    expect((await ask(gate, "/all")).status).toBe(401);
  });
});

describe("the Authorization header", () => {
  it("is removed, unless the route keeps it", async () => {
    const stripped = echoedBy(await ask(gate, "/rest", { token: gate.token }));
    expect(stripped.header("authorization")).toBeUndefined();
    const kept = echoedBy(await ask(gate, "/kept", { token: gate.token }));
    expect(kept.header("authorization")).toBe(`Bearer ${gate.token}`);
  });
});

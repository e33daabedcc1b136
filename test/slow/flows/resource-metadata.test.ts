/** Protected resource metadata (RFC 9728): where programs get a token for what they were refused. */
import { describe, expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../../support/echo-backend.ts";
import { startKeySetServer } from "../../support/foreign-keys.ts";
import { connectHttp2 } from "../../support/http2-client.ts";
import { exchange, request } from "../../support/raw-client.ts";
import { type ConfigParts, startSallyport } from "../../support/sallyport.ts";

const WELL_KNOWN = "/.well-known/oauth-protected-resource";

const ROUTES = [
  {
    name: "tools",
    path: "/mcp",
    upstream: "app",
    require: { scopes: { all: ["mcp:tools", "mcp:read"] } },
  },
  { name: "query", path: "/stream/", tokenFrom: [{ query: "access_token" }], upstream: "app" },
  { name: "everything", path: "/", require: { scopes: { any: ["read"] } }, upstream: "app" },
];

/** Starts a Sallyport that trusts an authorization server. */
async function gateWith(metadata: Record<string, string> | undefined, more: ConfigParts = {}) {
  const stack = new AsyncDisposableStack();
  const backend: EchoBackend = await startEchoBackend();
  stack.defer(() => backend.close());
  const keys = stack.use(await startKeySetServer(() => []));
  const jwks = { url: keys.url };
  const trusted = ["https://id.example.com/", "machines", "opaque:main"].map((issuer) => {
    return { issuer, audience: "x", algorithms: ["ES256"], jwks };
  });
  const config = { routes: ROUTES, tokens: { trusted }, ...(metadata && { metadata }), ...more };
  const gate = await startSallyport({ target: backend.url, config });
  stack.defer(() => gate.close());
  return { gate, backend, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

it("says for every path of a route where tokens come from, to everybody", async () => {
  await using one = await gateWith({ name: "Orders", documentation: "https://docs.example.com/x" });
  const { gate } = one;
  const read = async (path: string, headers: Record<string, string> = {}) => {
    const { status, body, headers: fields } = await ask(gate, path, { headers });
    return { status, document: JSON.parse(body) as unknown, fields };
  };
  const host = `https://localhost:${gate.port}`;
  const root = await read(WELL_KNOWN, { host: `localhost:${gate.port}` });
  expect(root.document).toEqual({
    resource: host,
    authorization_servers: ["https://id.example.com/"],
    scopes_supported: ["mcp:tools", "mcp:read", "read"],
    bearer_methods_supported: ["header", "query"],
    resource_name: "Orders",
    resource_documentation: "https://docs.example.com/x",
  });
  expect(root.fields).toMatchObject({
    "content-type": "application/json",
    "cache-control": "private, max-age=300",
    "access-control-allow-origin": "*",
  });
  const tools = await read(`${WELL_KNOWN}/mcp`, { host: "api.example.com" });
  expect(tools.document).toMatchObject({
    resource: "https://api.example.com/mcp",
    scopes_supported: ["mcp:tools", "mcp:read"],
  });
  expect((await read(`${WELL_KNOWN}/stream`)).document).not.toHaveProperty("scopes_supported");
  expect(one.backend.requests).toEqual([]);
  const others = await ask(gate, `${WELL_KNOWN}/other`, { token: gate.token });
  expect(others.status).toBe(404);
});

describe("a backend", () => {
  const [tools] = ROUTES;
  const open = { auth: "none", upstream: "app" };

  it("cannot say where clients of another one get their tokens", async () => {
    const rows = { name: "rows", regex: "/rows/[0-9]+", upstream: "app" };
    const routes = [tools, rows, { name: "site", path: "/", ...open }];
    await using one = await gateWith({}, { routes });
    const paths = ["/mcp/v2", "/rows/1", "/MCP", "/mcp/v2/", "/other", "/mcp.json", "//mcp"];
    const wellKnown = ["/.Well-Known/OAuth-Protected-Resource/mcp", `${WELL_KNOWN}%20/mcp`];
    for (const path of [...paths.map((each) => WELL_KNOWN + each), ...wellKnown]) {
      const { status } = await ask(one.gate, path, { headers: { host: "api.example.com" } });
      expect([path, status]).toEqual([path, expect.toBeOneOf([400, 401, 404])]);
    }
    expect(one.backend.requests).toEqual([]);
    expect((await ask(one.gate, "/.well-known/other")).status).toBe(200);
  });

  it("may answer there if a route says so", async () => {
    const old = { name: "old", exact: `${WELL_KNOWN}/old`, ...open };
    await using one = await gateWith({}, { routes: [tools, old] });
    expect((await ask(one.gate, `${WELL_KNOWN}/old`)).status).toBe(200);
    expect(one.backend.requests).toHaveLength(1);
  });
});

describe("challenges", () => {
  it("name it, with the scope that is missing", async () => {
    await using one = await gateWith({});
    const { gate } = one;
    const asked = async (path: string, token?: string) =>
      (await ask(gate, path, { headers: { host: "api.example.com" }, ...(token && { token }) }))
        .headers["www-authenticate"];
    const metadata = `resource_metadata="https://api.example.com${WELL_KNOWN}"`;
    expect(await asked("/orders")).toBe(`Bearer realm="sallyport", scope="read", ${metadata}`);
    const invalid = (await asked("/orders", "x.y.z")) ?? "";
    expect(invalid).toMatch(/^Bearer realm="sallyport", error="invalid_token", /);
    expect(invalid.endsWith(`, ${metadata}`)).toBe(true);
    // Least privilege from the beginning: a program need not ask for every scope that the metadata lists.
    const first = `Bearer realm="sallyport", scope="mcp:tools mcp:read", ${metadata}`;
    expect(await asked("/mcp")).toBe(first);
    expect(await asked("/mcp", "x.y.z")).toContain(', scope="mcp:tools mcp:read", resource_');
    expect(await asked("/mcp", gate.token)).toBe(
      `Bearer realm="sallyport", error="insufficient_scope", scope="mcp:tools mcp:read", ${metadata}`,
    );
  });

  it("name that of the configured resource, whatever host is asked for", async () => {
    await using one = await gateWith({ resource: "https://api.example.com/mcp" });
    const { gate } = one;
    const answer = await ask(gate, "/mcp", { headers: { host: "evil.example.com" } });
    expect(answer.headers["www-authenticate"]).toBe(
      `Bearer realm="sallyport", scope="mcp:tools mcp:read", resource_metadata="https://api.example.com${WELL_KNOWN}/mcp"`,
    );
    const { body } = await ask(gate, `${WELL_KNOWN}/mcp`, {
      headers: { host: "evil.example.com" },
    });
    expect(JSON.parse(body)).toMatchObject({ resource: "https://api.example.com/mcp" });
    const root = await ask(gate, WELL_KNOWN, { headers: { host: "evil.example.com" } });
    expect(JSON.parse(root.body)).toMatchObject({ resource: "https://api.example.com/mcp" });
  });

  it("are as they were, and the path belongs to the backend, without the section", async () => {
    await using one = await gateWith(undefined);
    const { gate } = one;
    const answer = await ask(gate, WELL_KNOWN);
    expect(answer.status).toBe(401);
    expect(answer.headers["www-authenticate"]).toBe('Bearer realm="sallyport"');
  });
});

describe("whoever asks", () => {
  it("has no influence on what caches keep for others", async () => {
    await using named = await gateWith({ resource: "https://api.example.com/mcp" });
    const headers = { host: "evil.example.com:99", "x-forwarded-host": "evil.example.com" };
    for (const path of ["", "/", "/mcp", "/mcp/", "/stream/", "/stream"]) {
      const answer = await ask(named.gate, WELL_KNOWN + path, { headers });
      expect(answer.headers["cache-control"]).toBe("public, max-age=300");
      expect(answer.body).not.toContain("evil");
    }
    await using unnamed = await gateWith({});
    // Some caches leave the port out of their keys.
    const answer = await ask(unnamed.gate, WELL_KNOWN, { headers });
    expect(JSON.parse(answer.body)).toMatchObject({ resource: "https://evil.example.com:99" });
    expect(answer.headers["cache-control"]).toBe("private, max-age=300");
    const stranger = { "x-forwarded-host": "evil.example.com", "x-forwarded-proto": "http" };
    for (const each of [stranger, { forwarded: "host=evil.example.com;proto=http" }]) {
      const sent = { headers: { host: "api.example.com", ...each } };
      expect((await ask(unnamed.gate, WELL_KNOWN, sent)).body).toContain("https://api.example.com");
      const { headers: fields } = await ask(unnamed.gate, "/orders", sent);
      expect(fields["www-authenticate"]).toContain('"https://api.example.com/.well-known');
    }
  });

  it("gets nothing for a host that has no address", async () => {
    await using one = await gateWith({});
    const http10 = (path: string) => exchange(one.gate, request([`GET ${path} HTTP/1.0`]));
    expect((await http10(WELL_KNOWN)).last.status).toBe(404);
    expect(String((await http10("/orders")).last.headers)).not.toContain("resource_metadata");
    for (const host of ["999.999.999.999", "[::ffff]:1", "[1:2]", "xn--a"]) {
      const answer = await ask(one.gate, WELL_KNOWN, { headers: { host } });
      const challenged = (await ask(one.gate, "/x", { headers: { host } })).headers;
      const named = URL.canParse(`https://${host}`);
      expect(answer.status).toBe(named ? 200 : 404);
      expect(challenged["www-authenticate"]?.includes("resource_metadata")).toBe(named);
    }
    const quotes = request([`GET ${WELL_KNOWN} HTTP/1.1`, 'Host: a", scope="x']);
    expect((await exchange(one.gate, quotes, { responses: Infinity })).last.status).toBe(400);
  });

  it("is believed about another host only as a proxy that may ask for decisions", async () => {
    const decisions = { from: ["127.0.0.0/8"] };
    await using one = await gateWith({}, { decisions });
    const about = async (target: string, host: string) => {
      const said = { "x-forwarded-method": "GET", "x-forwarded-uri": target };
      const headers = { ...said, "x-forwarded-for": "192.0.2.50", "x-forwarded-host": host };
      const answer = await ask(one.gate, "/_sallyport/decide", { headers });
      return [answer.status, answer.headers["www-authenticate"]];
    };
    const metadata = `resource_metadata="https://shop.example.com${WELL_KNOWN}"`;
    const challenge = `Bearer realm="sallyport", scope="read", ${metadata}`;
    expect(await about("/orders", "shop.example.com")).toEqual([401, challenge]);
    for (const host of ['a", scope="x', 'a"b', "a/b", "a@b", ""]) {
      expect(String(await about("/orders", host))).not.toContain("a");
    }
  });

  it("reads of the routes of that host alone", async () => {
    const routes = [
      {
        name: "one",
        hosts: ["one.example.com"],
        path: "/mcp",
        upstream: "app",
        require: { scopes: { all: ["one"] } },
      },
      {
        name: "two",
        hosts: ["*.two.example.com"],
        path: "/two",
        upstream: "app",
        require: { scopes: { all: ["two"] } },
      },
    ];
    await using gated = await gateWith({}, { routes });
    const read = (host: string, path = "") =>
      ask(gated.gate, WELL_KNOWN + path, { headers: { host } });
    expect(JSON.parse((await read("one.example.com")).body)).toMatchObject({
      scopes_supported: ["one"],
    });
    expect(JSON.parse((await read("a.two.example.com:8443", "/two")).body)).toMatchObject({
      resource: "https://a.two.example.com:8443/two",
      scopes_supported: ["two"],
    });
    expect((await read("a.two.example.com", "/mcp")).status).toBe(404);
    expect((await read("evil.example.com")).status).toBe(404);
    const refused = await ask(gated.gate, "/mcp", { headers: { host: "evil.example.com" } });
    expect(refused.headers["www-authenticate"]).toBe('Bearer realm="sallyport"');
  });

  it.each([undefined, "https://api.example.com"])(
    "reads nothing of routes that do not serve its address, or another host (resource %s)",
    async (resource) => {
      const near = { allow: ["127.0.0.0/8"], upstream: "app" };
      const far = { allow: ["10.0.0.0/8"], upstream: "app" };
      const requiring = (scope: string) => ({ require: { scopes: { all: [scope] } } });
      const routes = [
        { name: "far", path: "/far", ...requiring("far"), ...far },
        { name: "near", path: "/near", ...requiring("near"), ...near },
        {
          name: "other",
          hosts: ["other.example.com"],
          path: "/other",
          upstream: "app",
          ...requiring("other"),
        },
        { name: "rest", path: "/", ...requiring("rest"), upstream: "app" },
      ];
      await using gated = await gateWith(resource === undefined ? {} : { resource }, { routes });
      const read = (path: string) =>
        ask(gated.gate, WELL_KNOWN + path, { headers: { host: "api.example.com" } });
      const root = await read("");
      expect(JSON.parse(root.body)).toMatchObject({ scopes_supported: ["near", "rest"] });
      // Another address gets another answer.
      expect(root.headers["cache-control"]).toBe("private, max-age=300");
      expect(JSON.parse((await read("/near")).body)).toMatchObject({ scopes_supported: ["near"] });
      for (const path of ["/far", "/other"]) expect((await read(path)).status).toBe(404);
    },
  );

  it("reads of all routes if a proxy in front asks by another name than the resource's", async () => {
    const routes = ROUTES.map((route) => ({ ...route, hosts: ["mcp.internal"] }));
    await using one = await gateWith({ resource: "https://api.example.com" }, { routes });
    const { body } = await ask(one.gate, `${WELL_KNOWN}/mcp`, {
      headers: { host: "mcp.internal" },
    });
    expect(JSON.parse(body)).toMatchObject({
      resource: "https://api.example.com/mcp",
      scopes_supported: ["mcp:tools", "mcp:read"],
    });
  });

  it("may spell the path with a last slash, and no other way", async () => {
    await using one = await gateWith({});
    const read = (path: string) =>
      ask(one.gate, WELL_KNOWN + path, { headers: { host: "api.example.com" } });
    const resourceOf = async (path: string) => JSON.parse((await read(path)).body).resource;
    expect(await resourceOf("/")).toBe("https://api.example.com");
    expect(await resourceOf("/stream/")).toBe("https://api.example.com/stream/");
    expect(await resourceOf("/mcp?x=1")).toBe("https://api.example.com/mcp");
    expect(await resourceOf("/%6Dcp")).toBe("https://api.example.com/mcp");
    for (const path of ["//mcp", "/mcp//", "/./mcp", "/x/../mcp", "/%2e%2e/x", "%2Fmcp"]) {
      expect((await read(path)).status).toBe(400);
    }
    expect((await read("/MCP")).status).toBe(401);
    expect(one.backend.requests).toEqual([]);
  });

  it("may use a browser, HEAD, HTTP/2 and any token", async () => {
    await using one = await gateWith({}, { server: { http2: true } });
    const { gate } = one;
    const headers = { origin: "https://inspector.example.com", host: "api.example.com" };
    const asked = { method: "OPTIONS", headers };
    const preflight = await ask(gate, `${WELL_KNOWN}/mcp`, asked);
    expect(preflight.status).toBe(200);
    expect(preflight.headers).toMatchObject({
      "access-control-allow-origin": "*",
      "access-control-allow-headers": "*",
    });
    const whole = await ask(gate, WELL_KNOWN, { headers, token: "x.y.z" });
    const head = await ask(gate, WELL_KNOWN, { headers, method: "HEAD" });
    expect([whole.status, head.status, head.body]).toEqual([200, 200, ""]);
    expect(head.headers["content-length"]).toBe(String(whole.body.length));
    const posted = await ask(gate, WELL_KNOWN, { headers, method: "POST", body: "{}" });
    expect([posted.status, posted.headers.allow]).toEqual([405, "GET, HEAD, OPTIONS"]);
    await using client = await connectHttp2(gate);
    const over2 = { ":path": WELL_KNOWN, ":authority": "api.example.com" };
    expect((await client.ask(over2)).body).toBe(whole.body);
    expect((await client.ask({ ...over2, ":method": "HEAD" })).body).toBe("");
    // Two names in one request (RFC 9113 §8.3.1).
    const two = await client.ask({ ...over2, host: "evil.example.com" }).catch(() => undefined);
    expect(two?.body ?? "").not.toContain("resource");
    const challenged = await client.ask({ ...over2, ":path": "/orders" });
    expect(challenged.headers["www-authenticate"]).toContain('"https://api.example.com/');
  });

  it("gets an answer that browsers may read, too, even if it comes from a cache", async () => {
    const of = (origins: string[]) =>
      gateWith({ resource: "https://api.example.com" }, { cors: { origins } });
    await using anyone = await of(["*"]);
    const plain = await ask(anyone.gate, WELL_KNOWN);
    expect(plain.headers["access-control-allow-origin"]).toBe("*");
    await using some = await of(["https://app.example.com"]);
    const { headers } = await ask(some.gate, WELL_KNOWN);
    expect(headers.vary).toBe("Origin");
    expect(headers).not.toHaveProperty("access-control-allow-origin");
  });
});

it("names the query as a place for tokens only under the name that programs know", async () => {
  const routes = [{ name: "app", path: "/", tokenFrom: [{ query: "token" }], upstream: "app" }];
  await using one = await gateWith({}, { routes });
  const { body } = await ask(one.gate, WELL_KNOWN, { headers: { host: "api.example.com" } });
  expect(JSON.parse(body)).toMatchObject({ bearer_methods_supported: ["header"] });
});

it("needs no routes", async () => {
  await using one = await gateWith({}, { routes: undefined });
  const { body } = await ask(one.gate, WELL_KNOWN, { headers: { host: "api.example.com" } });
  expect(JSON.parse(body)).toMatchObject({ resource: "https://api.example.com" });
});

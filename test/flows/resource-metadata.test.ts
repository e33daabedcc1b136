/** Protected resource metadata (RFC 9728): where programs get a token for what they were refused. */
import { describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { startKeySetServer } from "../support/foreign-keys.ts";
import { startSallyport } from "../support/sallyport.ts";

const WELL_KNOWN = "/.well-known/oauth-protected-resource";

const ROUTES = [
  {
    ...{ name: "tools", path: "/mcp", upstream: "app" },
    require: { scopes: { all: ["mcp:tools", "mcp:read"] } },
  },
  { name: "query", path: "/stream/", tokenFrom: [{ query: "access_token" }], upstream: "app" },
  { name: "everything", path: "/", require: { scopes: { any: ["read"] } }, upstream: "app" },
];

/** Starts a Sallyport that trusts an authorization server. */
async function gateWith(metadata: Record<string, string> | undefined) {
  const stack = new AsyncDisposableStack();
  const backend: EchoBackend = await startEchoBackend();
  stack.defer(() => backend.close());
  const keys = stack.use(await startKeySetServer(() => []));
  const jwks = { url: keys.url };
  const trusted = ["https://id.example.com/", "machines"].map((issuer) => {
    return { issuer, audience: "x", algorithms: ["ES256"], jwks };
  });
  const config = { routes: ROUTES, tokens: { trusted }, ...(metadata && { metadata }) };
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
    ...{ resource_name: "Orders", resource_documentation: "https://docs.example.com/x" },
  });
  expect(root.fields).toMatchObject({
    ...{ "content-type": "application/json", "cache-control": "public, max-age=300" },
    "access-control-allow-origin": "*",
  });
  const tools = await read(`${WELL_KNOWN}/mcp`, { host: "api.example.com" });
  expect(tools.document).toMatchObject({
    ...{ resource: "https://api.example.com/mcp", scopes_supported: ["mcp:tools", "mcp:read"] },
  });
  expect((await read(`${WELL_KNOWN}/stream`)).document).not.toHaveProperty("scopes_supported");
  expect(one.backend.requests).toEqual([]);
  const others = await ask(gate, `${WELL_KNOWN}/other`, { token: gate.token });
  expect(others.status).toBe(403);
});

describe("challenges", () => {
  it("name it, with the scope that is missing", async () => {
    await using one = await gateWith({});
    const { gate } = one;
    const asked = async (path: string, token?: string) =>
      (await ask(gate, path, { headers: { host: "api.example.com" }, ...(token && { token }) }))
        .headers["www-authenticate"];
    const metadata = `resource_metadata="https://api.example.com${WELL_KNOWN}"`;
    expect(await asked("/orders")).toBe(`Bearer realm="sallyport", ${metadata}`);
    const invalid = (await asked("/orders", "x.y.z")) ?? "";
    expect(invalid).toMatch(/^Bearer realm="sallyport", error="invalid_token", /);
    expect(invalid.endsWith(`, ${metadata}`)).toBe(true);
    expect(await asked("/mcp", gate.token)).toBe(
      `Bearer realm="sallyport", error="insufficient_scope", scope="mcp:tools mcp:read", ${metadata}`,
    );
  });

  it("name that of the configured resource, whatever host is asked for", async () => {
    await using one = await gateWith({ resource: "https://api.example.com/mcp" });
    const { gate } = one;
    const answer = await ask(gate, "/mcp", { headers: { host: "evil.example.com" } });
    expect(answer.headers["www-authenticate"]).toBe(
      `Bearer realm="sallyport", resource_metadata="https://api.example.com${WELL_KNOWN}/mcp"`,
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

/** Which claims a token must have, and which of them reach the backend. */
import { join } from "node:path";
import { SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Explanation } from "../../src/core/explanation.ts";
import { command } from "../cli/command.ts";
import { ask, type Answer } from "../support/ask.ts";
import { echoedBy } from "../support/echoed.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { signingPair, signToken } from "../support/foreign-keys.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";

const ISSUER = "https://id.example.com";
const STRICT = "https://strict.example.com";
const MAPPED = "https://mapped.example.com";
const pair = signingPair("foreign");
const now = (): number => Math.floor(Date.now() / 1000);

let serial = 0;
function tokenOf(more: Readonly<Record<string, unknown>> = {}): Promise<string> {
  serial += 1;
  const times = { iat: now(), exp: now() + 600 };
  return signToken(pair, {
    iss: ISSUER,
    aud: "orders",
    sub: "zoe",
    jti: String(serial),
    ...times,
    ...more,
  });
}

const route = (name: string, require: object) => ({
  name,
  path: `/${name}`,
  upstream: "app",
  require,
});

const stack = new AsyncDisposableStack();
let gate: Sallyport;
beforeAll(async () => {
  const backend = stack.use(await startEchoBackend());
  const trust = { algorithms: ["ES256"], jwks: { file: "jwks.json" } };
  gate = stack.use(
    await startSallyport({
      withoutToken: true,
      target: backend.url,
      files: { "jwks.json": JSON.stringify({ keys: [pair.jwk] }) },
      config: {
        identity: {
          claims: {
            "X-Auth-Email": "email",
            "X-Auth-Tenant": "tenant.id",
            "X-Auth-Roles": "https://example.com/roles",
          },
        },
        tokens: {
          trusted: [
            { ...trust, issuer: ISSUER, audience: ["orders", "invoices"] },
            {
              ...trust,
              issuer: STRICT,
              audience: "orders",
              types: ["application/AT+jwt"],
              maxLifetime: "1h",
            },
            {
              ...trust,
              issuer: MAPPED,
              audience: "orders",
              claims: { subject: "email", groups: "realm_access.roles" },
            },
          ],
        },
        routes: [
          route("scopes", { scopes: { all: ["orders:read"], any: ["eu", "us"] } }),
          route("tenant", { claims: [{ claim: "tenant.id", any: ["acme", 7] }] }),
          route("verified", {
            claims: [
              { claim: "email_verified", equals: true },
              { claim: "https://example.com/roles", all: ["a", "b"] },
            ],
          }),
          route("issuer", { issuers: [ISSUER] }),
          route("admin", { groups: { any: ["admin"] } }),
          { name: "open", path: "/open", auth: "none", upstream: "app" },
          { name: "rest", path: "/", upstream: "app" },
        ],
      },
    }),
  );
});
afterAll(() => stack.disposeAsync());

const asked = async (path: string, more: Readonly<Record<string, unknown>> = {}): Promise<Answer> =>
  ask(gate, path, { token: await tokenOf(more) });
const statusOf = async (path: string, more: Readonly<Record<string, unknown>>): Promise<number> =>
  (await asked(path, more)).status;

describe("require.scopes", () => {
  it.each([
    ["a string with spaces", { scope: "eu orders:read" }, 200],
    ["several spaces", { scope: " eu  orders:read " }, 200],
    ["a list in scope", { scope: ["us", "orders:read"] }, 200],
    ["a list in scp", { scp: ["us", "orders:read"] }, 200],
    ["a string in scp", { scp: "us orders:read" }, 200],
    ["one of two", { scope: "orders:read" }, 403],
    ["a longer name", { scope: "eu orders:readwrite" }, 403],
    ["another case", { scope: "EU orders:read" }, 403],
    ["scope next to scp, which takes precedence", { scope: "eu", scp: "eu orders:read" }, 403],
    ["two scopes in one element of a list", { scope: ["eu orders:read"] }, 403],
    ["a tab as separator", { scope: "eu\torders:read" }, 403],
    ["an object", { scope: { eu: 1, "orders:read": 1 } }, 403],
    ["nothing", {}, 403],
  ])("%s", async (_name, claims, status) => {
    expect(await statusOf("/scopes", claims)).toBe(status);
  });

  it("are the only thing named in the challenge of a 403", async () => {
    const answer = await asked("/scopes", { scope: "secret" });
    expect(answer.headers["www-authenticate"]).toBe(
      'Bearer realm="sallyport", error="insufficient_scope", scope="orders:read eu us"',
    );
    expect(JSON.parse(answer.body)).toEqual({
      id: expect.toSatisfy(Number.isSafeInteger),
      message: "Access to this resource is not allowed",
      success: false,
    });
    const other = await asked("/admin");
    expect(other.headers["www-authenticate"]).toBe(
      'Bearer realm="sallyport", error="insufficient_scope"',
    );
  });
});

describe("require.claims", () => {
  it.each([
    ["/tenant", { tenant: { id: "acme" } }, 200],
    ["/tenant", { tenant: { id: 7 } }, 200],
    ["/tenant", { tenant: { id: ["x", "acme"] } }, 200],
    ["/tenant", { "tenant.id": "acme" }, 200],
    ["/tenant", { "tenant.id": "x", tenant: { id: "acme" } }, 403],
    ["/tenant", { tenant: { id: "7" } }, 403],
    ["/tenant", { tenant: { id: "Acme" } }, 403],
    ["/tenant", { tenant: { id: { acme: true } } }, 403],
    ["/tenant", { tenant: { id: [["acme"]] } }, 403],
    ["/tenant", { tenant: ["acme"] }, 403],
    ["/tenant", { tenant: "acme" }, 403],
    ["/tenant", { tenant: null }, 403],
    ["/tenant", {}, 403],
    ["/verified", { email_verified: true, "https://example.com/roles": ["a", "b", "c"] }, 200],
    ["/verified", { email_verified: "true", "https://example.com/roles": ["a", "b"] }, 403],
    ["/verified", { email_verified: 1, "https://example.com/roles": ["a", "b"] }, 403],
    ["/verified", { email_verified: true, "https://example.com/roles": ["a"] }, 403],
    ["/verified", { email_verified: true }, 403],
    ["/issuer", {}, 200],
    ["/issuer", { iss: MAPPED, email: "z@example.com" }, 403],
  ])("%s with %j: %i", async (path, claims, status) => {
    expect(await statusOf(path, claims)).toBe(status);
  });
});

describe("a trusted issuer", () => {
  it.each([
    ["the second of its audiences", { aud: "invoices" }, 200],
    ["one of its audiences in a list", { aud: ["x", "invoices"] }, 200],
    ["another audience", { aud: "sallyport" }, 401],
    ["its audiences in one string", { aud: "orders,invoices" }, 401],
  ])("handles %s", async (_name, claims, status) => {
    expect(await statusOf("/x", claims)).toBe(status);
  });

  it("may carry names and groups in other claims", async () => {
    const realm_access = { roles: ["admin", "b,c"] };
    const claims = { iss: MAPPED, email: "z@example.com", sub: "id-1", groups: ["x"] };
    const answer = await asked("/admin", { ...claims, realm_access });
    expect(answer.status).toBe(200);
    expect(echoedBy(answer).header("x-auth-subject")).toBe("z@example.com");
    expect(echoedBy(answer).header("x-auth-groups")).toBe("admin,b%2Cc");
    expect(await statusOf("/admin", { ...claims, realm_access: { roles: "admin" } })).toBe(200);
    // The `groups` claim, the default for other issuers, is ignored here.
    expect(await statusOf("/admin", { ...claims, groups: ["admin"] })).toBe(403);
  });

  it.each([
    ["no name", { email: undefined }],
    ["a name that is a list", { email: ["z@example.com"] }],
    ["a name with a line break", { email: "z\r\nX-Auth-Groups: admin" }],
    ["groups that are objects", { email: "z", realm_access: { roles: [{}] } }],
  ])("is refused with %s when that claim is mapped", async (_name, claims) => {
    expect(await statusOf("/x", { iss: MAPPED, ...claims })).toBe(401);
  });

  const typed = async (typ: string | undefined, more: object = {}): Promise<number> => {
    const claims = { iss: STRICT, aud: "orders", sub: "zoe", iat: now(), exp: now() + 60, ...more };
    const header = { alg: "ES256", kid: pair.kid, ...(typ === undefined ? {} : { typ }) };
    const token = await new SignJWT(claims).setProtectedHeader(header).sign(pair.privateKey);
    return (await ask(gate, "/x", { token })).status;
  };

  it("takes only tokens of its types", async () => {
    expect(await typed("at+jwt")).toBe(200);
    expect(await typed("application/at+JWT")).toBe(200);
    expect(await typed("JWT")).toBe(401);
    expect(await typed("logout+jwt")).toBe(401);
    expect(await typed(undefined)).toBe(401);
  });

  it("takes only tokens within maxLifetime", async () => {
    expect(await typed("at+jwt", { iat: now() - 3000, exp: now() + 600 })).toBe(200);
    expect(await typed("at+jwt", { iat: now() - 3001, exp: now() + 600 })).toBe(401);
    expect(await typed("at+jwt", { iat: undefined })).toBe(401);
  });
});

describe("identity.claims", () => {
  const SENT = { "X-Auth-Email": "root@example.com", x_auth_tenant: "acme", "X-Auth-Roles": "a" };

  it("become headers, and headers of these names from the client never pass", async () => {
    const claims = { email: "zoe@example.com", tenant: { id: 7 } };
    const roles = { "https://example.com/roles": ["a,b", "ä", true] };
    const token = await tokenOf({ ...claims, ...roles });
    const echoed = echoedBy(await ask(gate, "/x", { token, headers: SENT }));
    expect(echoed.header("x-auth-email")).toBe("zoe@example.com");
    expect(echoed.header("x-auth-tenant")).toBe("7");
    expect(echoed.header("x_auth_tenant")).toBeUndefined();
    expect(echoed.header("x-auth-roles")).toBe("a%2Cb,%C3%A4,true");
  });

  it.each([
    ["a token without these claims", true, "/x"],
    ["a public route", false, "/open"],
  ])("are absent with %s", async (_name, with_token, path) => {
    const token = with_token ? { token: await tokenOf() } : {};
    const echoed = echoedBy(await ask(gate, path, { ...token, headers: SENT }));
    for (const name of ["x-auth-email", "x_auth_tenant", "x-auth-tenant", "x-auth-roles"]) {
      expect(echoed.header(name)).toBeUndefined();
    }
  });
});

describe("explain", () => {
  const explained = async (path: string, claims: object): Promise<Explanation> => {
    const answer = await ask({ port: gate.adminPort }, `/-/explain?url=${path}`, {
      token: await tokenOf({ ...claims }),
    });
    return JSON.parse(answer.body);
  };

  it("says which requirement failed", async () => {
    const { verdict, requirements } = await explained("/verified", {
      email_verified: "true",
      "https://example.com/roles": ["a", "b", "c"],
    });
    expect(verdict).toMatchObject({ status: 403, reason: "forbidden" });
    const roles = { what: "claim https://example.com/roles", names: ["a", "b"] };
    expect(requirements).toEqual([
      {
        how: "every",
        what: "claim email_verified",
        names: [true],
        held: ["true"],
        met: false,
      },
      { how: "every", ...roles, held: ["a", "b", "c"], met: true },
    ]);
  });

  it("says why a token of a trusted issuer is not accepted", async () => {
    const told = async (claims: object): Promise<string | undefined> =>
      (await explained("/x", claims)).token?.steps.find(({ result }) => result === "failed")
        ?.detail;
    expect(await told({ aud: "x" })).toBe("it is for x, and must be for orders or invoices");
    expect(await told({ iss: STRICT })).toBe('"typ" is JWT, and must be at+jwt');
    expect(await told({ iss: MAPPED, email: "" })).toBe(
      '"email" must be 1 to 255 characters without control characters',
    );
  });

  it("says the same on the command line", async () => {
    const token = await tokenOf({ tenant: { id: "umbrella" } });
    const config = join(gate.directory, "config.yaml");
    const { out, code } = await command([
      ...["explain", "--url", "/tenant", "--config", config, "--token", token],
    ]);
    expect(code).toBe(1);
    expect(out).toMatch(/one claim tenant\.id of acme, 7; held: umbrella$/m);
  });
});

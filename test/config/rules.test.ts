import { describe, expect, test } from "vitest";
import { faultsOf, load, problemsOf, SMALLEST } from "./configuration-file.ts";

const server = (text: string): string => SMALLEST.replace("tls: off", `tls: off, ${text}`);
const tls = (text: string): string => SMALLEST.replace("tls: off", text);
const app = (text: string): string =>
  `server: { tls: off }\nupstreams: { app: { targets: ["http://h"], ${text} } }\n`;
const target = (text: string): string =>
  `server: { tls: off }\nupstreams: { app: { targets: ["${text}"] } }\n`;
const route = (text: string): string =>
  `${SMALLEST}routes: [{ name: r, upstream: app, ${text} }]\n`;
const trusted = (text: string): string => `${SMALLEST}tokens: { trusted: [{ ${text} }] }\n`;

/** The keys that are at fault. */
async function keysAtFault(text: string, env: Record<string, string> = {}): Promise<string[]> {
  return (await faultsOf(text, { env })).map((fault) => fault.split(" ")[1] ?? "");
}

describe("refused", () => {
  test.each([
    ["no TLS choice", "server: {}\nupstreams: { app: { targets: [http://h] } }", "server.tls"],
    ["TLS without a key", tls("tls: { certFile: a }"), "server.tls"],
    ["TLS both ways", tls("tls: { selfSigned: true, certFile: a, keyFile: b }"), "server.tls"],
    ["TLS neither way", tls("tls: { selfSigned: false }"), "server.tls"],
    [
      "TLS 1.1",
      tls("tls: { certFile: a, keyFile: b, minVersion: TLSv1.1 }"),
      "server.tls.minVersion",
    ],
    ["a listener without a port", server('listen: "0.0.0.0"'), "server.listen"],
    ["a port too high", server('listen: "0.0.0.0:65536"'), "server.listen"],
    ["half an address", server('listen: "300.0.0.1:80"'), "server.listen"],
    ["an IPv6 address without brackets", server('listen: "::1:80"'), "server.listen"],
    [
      "a network that is none",
      server('trustedProxies: ["10.0.0.0/33"]'),
      "server.trustedProxies[0]",
    ],
    ["a host name as a network", server("trustedProxies: [proxy]"), "server.trustedProxies[0]"],
    ["a body limit of nothing", server("limits: { bodyBytes: 0B }"), "server.limits.bodyBytes"],
    ["half a worker", server("workers: 1.5"), "server.workers"],
    ["no policy for underscores", server("underscoreHeaders: ignore"), "server.underscoreHeaders"],
    [
      "a match on a header that is dropped",
      `${server("underscoreHeaders: drop")}routes: [{ name: r, upstream: app, headers: { X_Canary: always } }]`,
      "routes[0].headers.X_Canary",
    ],
    [
      "a token in a header that is rejected",
      `${server("underscoreHeaders: reject")}routes: [{ name: r, upstream: app, tokenFrom: [{ header: X-Ok }, { header: x_token }] }]`,
      "routes[0].tokenFrom[1].header",
    ],
    [
      "more header fields than are looked at",
      server("limits: { headers: 257 }"),
      "server.limits.headers",
    ],
    [
      "a time-out that no timer can hold",
      server("timeouts: { header: 1000h }"),
      "server.timeouts.header",
    ],
    [
      "the admin listener on the same port",
      `${SMALLEST}admin: { listen: "127.0.0.1:8443" }`,
      "admin.listen",
    ],
    ["the port that the admin listener has", server('listen: "127.0.0.1:9464"'), "admin.listen"],
    [
      "one users file twice",
      `${SMALLEST}users: [{ kind: file, path: a }, { kind: file, path: a }]`,
      "users[1].path",
    ],
    ["another kind of store", `${SMALLEST}users: [{ kind: nis, path: a }]`, "users[0].kind"],
    ["an unsigned token", `${SMALLEST}tokens: { algorithm: none }`, "tokens.algorithm"],
    [
      "a lifetime in fractions of a second",
      `${SMALLEST}tokens: { lifetime: 1500ms }`,
      "tokens.lifetime",
    ],
    ["a number as text", `${SMALLEST}tokens: { issuer: 5 }`, "tokens.issuer"],
    [
      "a shared secret for others' tokens",
      trusted("issuer: a, audience: b, jwks: { file: f }, algorithms: [HS256]"),
      "tokens.trusted[0].algorithms[0]",
    ],
    [
      "a key set over plain HTTP",
      trusted(
        "issuer: a, audience: b, jwks: { url: 'http://id.example.com/' }, algorithms: [ES256]",
      ),
      "tokens.trusted[0].jwks.url",
    ],
    [
      "two sources of a key set",
      trusted("issuer: a, audience: b, jwks: { url: 'https://h/', file: f }, algorithms: [ES256]"),
      "tokens.trusted[0].jwks",
    ],
    [
      "our issuer trusted as another's",
      trusted("issuer: sallyport, audience: b, jwks: { file: f }, algorithms: [ES256]"),
      "tokens.trusted[0].issuer",
    ],
    ["a version of two parts", `${SMALLEST}version: { text: "2.3" }`, "version.text"],
    ["two versions", `${SMALLEST}version: { text: 2.3.1, file: V }`, "version"],
    [
      "a version of no upstream",
      `${SMALLEST}version: { upstream: ap, path: /v }`,
      "version.upstream",
    ],
    ["a version in no variable", `${SMALLEST}version: { env: NONE }`, "version.env"],
    ["a malformed version in a variable", `${SMALLEST}version: { env: BAD }`, "version.env"],
    [
      "a header that frames",
      `${SMALLEST}identity: { headers: { subject: Content-Length } }`,
      "identity.headers.subject",
    ],
    [
      "credentials as identity",
      `${SMALLEST}identity: { headers: { subject: authorization } }`,
      "identity.headers.subject",
    ],
    [
      "no header name",
      `${SMALLEST}identity: { headers: { subject: "X User" } }`,
      "identity.headers.subject",
    ],
    [
      "one header twice",
      `${SMALLEST}identity: { headers: { subject: X-U, groups: x_u } }`,
      "identity.headers.groups",
    ],
    ["an unknown preset", `${SMALLEST}identity: { headers: oauth-proxy }`, "identity.headers"],
    ["no routes", `${SMALLEST}routes: []`, "routes"],
    ...["authenticate", "version", "jwks", "none"].map((name) => [
      `the reserved route name ${name}`,
      `${SMALLEST}routes: [{ name: ${name}, upstream: app }]`,
      "routes[0].name",
    ]),
    [
      "a route name that is no label",
      `${SMALLEST}routes: [{ name: "a b", upstream: app }]`,
      "routes[0].name",
    ],
    ["path beside exact", route("path: /a, exact: /b"), "routes[0].exact"],
    [
      "groups without a token",
      route("auth: none, require: { groups: { any: [x] } }"),
      "routes[0].require",
    ],
    [
      "callers counted without a token",
      route("auth: none, rateLimit: { requests: 1, by: subject }"),
      "routes[0].rateLimit.by",
    ],
    [
      "a rate in fractions of a second",
      route("rateLimit: { requests: 1, within: 1500ms }"),
      "routes[0].rateLimit.within",
    ],
    ["no groups at all", route("require: { groups: {} }"), "routes[0].require.groups"],
    ["nothing required", route("require: {}"), "routes[0].require"],
    [
      "a scope with a blank",
      route("require: { scopes: { any: [a b] } }"),
      "routes[0].require.scopes.any[0]",
    ],
    [
      "a claim with no value",
      route("require: { claims: [{ claim: a }] }"),
      "routes[0].require.claims[0]",
    ],
    [
      "a claim that is null",
      route("require: { claims: [{ claim: a, equals: }] }"),
      "routes[0].require.claims[0].equals",
    ],
    [
      "an issuer that is not trusted",
      route("require: { issuers: [a] }"),
      "routes[0].require.issuers[0]",
    ],
    [
      "requirements where nobody must be known",
      route("auth: optional, require: { groups: { any: [a] } }"),
      "routes[0].require",
    ],
    [
      "a limit for nobody",
      route("auth: optional, rateLimit: { requests: 1, by: subject }"),
      "routes[0].rateLimit.by",
    ],
    ["places of no token", route("auth: none, tokenFrom: [{ cookie: a }]"), "routes[0].tokenFrom"],
    ["no place", route("tokenFrom: []"), "routes[0].tokenFrom"],
    [
      "a place twice",
      route("tokenFrom: [{ header: X-A }, { header: x-a }]"),
      "routes[0].tokenFrom",
    ],
    [
      "two places in one",
      route("tokenFrom: [{ header: X-A, cookie: a }]"),
      "routes[0].tokenFrom[0]",
    ],
    ["a place without a name", route("tokenFrom: [{}]"), "routes[0].tokenFrom[0]"],
    [
      "a header that is no place",
      route("tokenFrom: [{ header: Cookie }]"),
      "routes[0].tokenFrom[0].header",
    ],
    [
      "a cookie with a blank",
      route("tokenFrom: [{ cookie: a b }]"),
      "routes[0].tokenFrom[0].cookie",
    ],
    [
      "an encoded query field",
      route("tokenFrom: [{ query: a%20b }]"),
      "routes[0].tokenFrom[0].query",
    ],
    [
      "a header for two claims",
      `${SMALLEST}identity: { claims: { X-A: a, x_a: b } }`,
      "identity.claims.x_a",
    ],
    [
      "a claim in the place of the subject",
      `${SMALLEST}identity: { claims: { x-auth-subject: a } }`,
      "identity.claims.x-auth-subject",
    ],
    [
      "a claim in a header with a meaning",
      `${SMALLEST}identity: { claims: { Host: a } }`,
      "identity.claims.Host",
    ],
    ["a method in lower case", route("methods: [get]"), "routes[0].methods[0]"],
    ["TRACE", route("methods: [TRACE]"), "routes[0].methods[0]"],
    ["a host with a port", route("hosts: ['a:80']"), "routes[0].hosts[0]"],
    ["a star in the middle", route("hosts: [a.*.com]"), "routes[0].hosts[0]"],
    [
      "stripping what is not there",
      route("path: /apis, rewrite: { stripPrefix: /api }"),
      "routes[0].rewrite.stripPrefix",
    ],
    [
      "stripping a slash",
      route("path: /api/x, rewrite: { stripPrefix: /api/ }"),
      "routes[0].rewrite.stripPrefix",
    ],
    ["adding a slash", route("rewrite: { addPrefix: /v2/ }"), "routes[0].rewrite.addPrefix"],
    [
      "no target",
      "server: { tls: off }\nupstreams: { app: { targets: [] } }",
      "upstreams.app.targets",
    ],
    ["no upstream", "server: { tls: off }\nupstreams: {}", "upstreams"],
    [
      "an upstream that is no label",
      "server: { tls: off }\nupstreams: { App: { targets: [http://h] } }",
      "upstreams.App",
    ],
    ["half a client certificate", app("tls: { certFile: a }"), "upstreams.app.tls"],
    ["an empty section", `${SMALLEST}users:\n`, "users"],
    ["an unknown section", `${SMALLEST}constructor: {}\n`, "constructor"],
  ])("%s", async (_what, text, key) => {
    expect(await keysAtFault(text, { BAD: "1.2" })).toEqual([key]);
  });

  test.each([
    "docs",
    "/a//b",
    "/a/../b",
    "/./",
    "/a?b",
    "/a#b",
    "/a%2Fb",
    "/%61",
    "/a%40b",
    "/a b",
    "/a;b",
    "\\a",
  ])("the path %s of a route", async (path) => {
    expect(await keysAtFault(route(`path: '${path}'`))).toEqual(["routes[0].path"]);
  });

  test.each([
    "127.0.0.1:8080",
    "ftp://h",
    "http://h/path",
    "http://h/",
    "http://h?q",
    "http://u:p@h",
    "http://h:0",
    "http://h:65536",
    "http://300.1.1.1",
    "http://[::1",
    "unix:relative.sock",
    "unix://host/x",
    "HTTP://h",
  ])("the target %s", async (text) => {
    expect(await keysAtFault(target(text))).toEqual(["upstreams.app.targets[0]"]);
  });

  test("several upstreams without routes", async () => {
    const text = `server: { tls: off }\nupstreams: { a: { targets: [http://h] }, b: { targets: [http://h] } }`;
    expect(await keysAtFault(text)).toEqual(["routes"]);
  });

  test("two routes of one name, and two that answer the same requests", async () => {
    const text = `${SMALLEST}routes:
  - { name: a, upstream: app, path: /x, methods: [GET, POST] }
  - { name: a, upstream: app, path: /y }
  - { name: c, upstream: app, path: /x, methods: [PUT, POST] }
  - { name: d, upstream: app, hosts: [A.example.com] }
  - { name: e, upstream: app, hosts: [a.EXAMPLE.com] }
`;
    expect(await faultsOf(text)).toEqual(["5:13 routes[1].name", "6:5 routes[2]", "8:5 routes[4]"]);
  });
});

describe("accepted", () => {
  test.each([
    ["a path with an encoding that is needed", route("path: /a%20b")],
    [
      "an exact path beside its prefix",
      `${SMALLEST}routes:
  - { name: a, upstream: app, path: /x }
  - { name: b, upstream: app, exact: /x }
  - { name: c, upstream: app, path: /x, methods: [GET] }
  - { name: d, upstream: app, path: /x, hosts: ["*.example.com"] }
`,
    ],
    [
      "a key set on loopback over HTTP",
      trusted("issuer: a, audience: b, jwks: { url: 'http://127.0.0.1:1/' }, algorithms: [EdDSA]"),
    ],
    ["a Unix socket", target("unix:/run/app.sock")],
    ["a Unix socket as URL", target("unix:///run/app.sock")],
    ["an IPv6 target", target("http://[::1]:80")],
    ["a service name", target("https://my_app.internal:9443")],
    [
      "two listeners on free ports",
      server('listen: "127.0.0.1:0"').concat('admin: { listen: "127.0.0.1:0" }\n'),
    ],
    ["no admin listener", `${SMALLEST}admin: off\n`],
    ["its port without one", server('listen: "127.0.0.1:9464"').concat("admin: off\n")],
    [
      "own identity headers",
      `${SMALLEST}identity: { headers: { subject: X-User, groups: X-Groups } }\n`,
    ],
    ["networks", server('trustedProxies: ["10.0.0.0/8", "::1", "fd00::/8"]')],
  ])("%s", async (_what, text) => {
    expect(await problemsOf(text)).toEqual([]);
  });

  test("a version from a variable that is there, and one that a backend is asked for", async () => {
    const fromEnv = await load(`${SMALLEST}version: { env: API_VERSION }`, {
      env: { API_VERSION: "2.3.1" },
    });
    expect(fromEnv.configuration.version).toEqual({ env: "API_VERSION" });
    const asked = await load(`${SMALLEST}version: { upstream: app, path: /version }`);
    expect(asked.configuration.version).toEqual({
      upstream: "app",
      path: "/version",
      field: "version",
    });
  });

  test("an IPv6 listener, without its brackets", async () => {
    const { configuration } = await load(server('listen: "[::1]:8443"'));
    expect(configuration.server.listen).toEqual({ host: "::1", port: 8443 });
  });

  test("host names in any case, kept in lower case", async () => {
    const { configuration } = await load(route("hosts: [API.Example.com]"));
    expect(configuration.routes[0]?.hosts).toEqual(["api.example.com"]);
  });
});

test("a key set's URL with a fragment is reported as such", async () => {
  const jwks = "{ url: 'https://id.example.com/jwks#a' }";
  const entry = `{ issuer: a, audience: b, jwks: ${jwks}, algorithms: [ES256] }`;
  const problems = await problemsOf(`${SMALLEST}tokens: { trusted: [${entry}] }\n`);
  expect(problems.map(({ message }) => message)).toEqual([
    "tokens.trusted[0].jwks.url must have no fragment: the part after # is never sent",
  ]);
});

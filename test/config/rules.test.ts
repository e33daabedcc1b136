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

/** Returns the keys with problems. */
async function keysAtFault(text: string, env: Record<string, string> = {}): Promise<string[]> {
  return (await faultsOf(text, { env })).map((fault) => fault.split(" ")[1] ?? "");
}

describe("refused", () => {
  test.each([
    ["no TLS choice", "server: {}\nupstreams: { app: { targets: [http://h] } }", "server.tls"],
    ["TLS without a key", tls("tls: { certFile: a }"), "server.tls"],
    ["both kinds of TLS", tls("tls: { selfSigned: true, certFile: a, keyFile: b }"), "server.tls"],
    ["neither kind of TLS", tls("tls: { selfSigned: false }"), "server.tls"],
    [
      "TLS 1.1",
      tls("tls: { certFile: a, keyFile: b, minVersion: TLSv1.1 }"),
      "server.tls.minVersion",
    ],
    ["a listener without a port", server('listen: "0.0.0.0"'), "server.listen"],
    ["a port too high", server('listen: "0.0.0.0:65536"'), "server.listen"],
    ["half an address", server('listen: "300.0.0.1:80"'), "server.listen"],
    ["an IPv6 address without brackets", server('listen: "::1:80"'), "server.listen"],
    ["an invalid network", server('trustedProxies: ["10.0.0.0/33"]'), "server.trustedProxies[0]"],
    ...[
      ...["https://a/mcp?x", 'https://a"b/mcp', "https://a/mcp#x", "https://u:p@a", "http://a"],
      // Clients derive another address of the metadata, or one that no request may ask for.
      ...["https://a/x/../mcp", "https://A/mcp", "https://a:443/mcp", "https://a/m cp"],
      ...["https://a/m%2Fcp", "https://a//mcp", "https://a/mcp//", "https://a/m;cp"],
      ...["https://a/%6Dcp", "https://a/%c3%bc", "https://a/ü", "https://a\\b"],
    ].map((resource) => [
      `the resource ${resource}`,
      `${SMALLEST}metadata: { resource: '${resource}' }\n`,
      "metadata.resource",
    ]),
    ["a host name as a network", server("trustedProxies: [proxy]"), "server.trustedProxies[0]"],
    ...["X-Forwarded-For", "X-Forwarded-User", "Proxy", "Host", "X-App"].map((name) => [
      `a trusted header ${name}`,
      server(`trustedProxies: ["::1"], trustedHeaders: [${name}]`),
      "server.trustedHeaders[0]",
    ]),
    [
      "a trusted header without proxies",
      server("trustedHeaders: [X-Original-URL]"),
      "server.trustedHeaders",
    ],
    [
      "a trusted header with a claim",
      `${server('trustedProxies: ["::1"], trustedHeaders: [X-Original-User]')}\nidentity: { claims: { x_original_user: email } }`,
      "server.trustedHeaders[0]",
    ],
    ["a body limit of 0", server("limits: { bodyBytes: 0B }"), "server.limits.bodyBytes"],
    ["half a worker", server("workers: 1.5"), "server.workers"],
    [
      "an unknown policy for underscores",
      server("underscoreHeaders: ignore"),
      "server.underscoreHeaders",
    ],
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
      "a limit above the number of header fields read",
      server("limits: { headers: 257 }"),
      "server.limits.headers",
    ],
    [
      "a timeout that is too long for a timer",
      server("timeouts: { header: 1000h }"),
      "server.timeouts.header",
    ],
    [
      "the admin listener on the same port",
      `${SMALLEST}admin: { listen: "127.0.0.1:8443" }`,
      "admin.listen",
    ],
    ["the admin listener's port", server('listen: "127.0.0.1:9464"'), "admin.listen"],
    [
      "one users file twice",
      `${SMALLEST}users: [{ kind: file, path: a }, { kind: file, path: a }]`,
      "users[1].path",
    ],
    ["another kind of store", `${SMALLEST}users: [{ kind: nis, path: a }]`, "users[0].kind"],
    ["an unsigned token", `${SMALLEST}tokens: { algorithm: none }`, "tokens.algorithm"],
    [
      "a lifetime that is not a whole number of seconds",
      `${SMALLEST}tokens: { lifetime: 1500ms }`,
      "tokens.lifetime",
    ],
    ["a number instead of text", `${SMALLEST}tokens: { issuer: 5 }`, "tokens.issuer"],
    [
      "a symmetric algorithm for a trusted issuer",
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
      "our own issuer as a trusted one",
      trusted("issuer: sallyport, audience: b, jwks: { file: f }, algorithms: [ES256]"),
      "tokens.trusted[0].issuer",
    ],
    ["a version of two parts", `${SMALLEST}version: { text: "2.3" }`, "version.text"],
    ["two versions", `${SMALLEST}version: { text: 2.3.1, file: V }`, "version"],
    [
      "a version from an unknown upstream",
      `${SMALLEST}version: { upstream: ap, path: /v }`,
      "version.upstream",
    ],
    ["a version from a missing variable", `${SMALLEST}version: { env: NONE }`, "version.env"],
    ["a malformed version in a variable", `${SMALLEST}version: { env: BAD }`, "version.env"],
    [
      "a header that delimits messages",
      `${SMALLEST}identity: { headers: { subject: Content-Length } }`,
      "identity.headers.subject",
    ],
    [
      "credentials as identity",
      `${SMALLEST}identity: { headers: { subject: authorization } }`,
      "identity.headers.subject",
    ],
    ...["Proxy", "CDN-Loop", "X-Forwarded-Prefix", "x_forwarded_for"].map((name) => [
      `${name}, which the proxy writes itself, as identity`,
      `${SMALLEST}identity: { claims: { ${name}: sub } }`,
      `identity.claims.${name}`,
    ]),
    ...["X-Auth-Assertion", "X-Signed"].map((name) => [
      `a claim in ${name}, the header of assertions`,
      `${SMALLEST}identity: { claims: { ${name}: sub } }\ntokens: { assertion: { audience: a, header: ${name} } }`,
      `identity.claims.${name}`,
    ]),
    [
      "an invalid header name",
      `${SMALLEST}identity: { headers: { subject: "X User" } }`,
      "identity.headers.subject",
    ],
    [
      "a duplicate header",
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
      "an invalid route name",
      `${SMALLEST}routes: [{ name: "a b", upstream: app }]`,
      "routes[0].name",
    ],
    ["path together with exact", route("path: /a, exact: /b"), "routes[0].exact"],
    [
      "groups without a token",
      route("auth: none, require: { groups: { any: [x] } }"),
      "routes[0].require",
    ],
    [
      "a limit by caller without a token",
      route("auth: none, rateLimit: { requests: 1, by: subject }"),
      "routes[0].rateLimit.by",
    ],
    [
      "a period that is not a whole number of seconds",
      route("rateLimit: { requests: 1, within: 1500ms }"),
      "routes[0].rateLimit.within",
    ],
    ["no groups at all", route("require: { groups: {} }"), "routes[0].require.groups"],
    ["nothing required", route("require: {}"), "routes[0].require"],
    [
      "a scope with a space",
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
    ...["${query:name", "${path}", "${query:a{b}"].map((name): [string, string, string] => [
      `${name} in what a review is about`,
      `${SMALLEST}authorization: { rbac: { kind: subjectAccessReview, issuers: [sallyport], resource: { name: "$${name}" } } }\n`,
      "authorization.rbac.resource.name",
    ]),
    [
      "an issuer that is not trusted",
      route("require: { issuers: [a] }"),
      "routes[0].require.issuers[0]",
    ],
    [
      "requirements without authentication",
      route("auth: optional, require: { groups: { any: [a] } }"),
      "routes[0].require",
    ],
    [
      "a limit by subject without authentication",
      route("auth: none, rateLimit: { requests: 1, by: subject }"),
      "routes[0].rateLimit.by",
    ],
    [
      "token sources without a token",
      route("auth: none, tokenFrom: [{ cookie: a }]"),
      "routes[0].tokenFrom",
    ],
    ["no token source", route("tokenFrom: []"), "routes[0].tokenFrom"],
    [
      "a duplicate token source",
      route("tokenFrom: [{ header: X-A }, { header: x-a }]"),
      "routes[0].tokenFrom",
    ],
    [
      "two token sources in one",
      route("tokenFrom: [{ header: X-A, cookie: a }]"),
      "routes[0].tokenFrom[0]",
    ],
    ["a token source without a name", route("tokenFrom: [{}]"), "routes[0].tokenFrom[0]"],
    [
      "a header that cannot be a token source",
      route("tokenFrom: [{ header: Cookie }]"),
      "routes[0].tokenFrom[0].header",
    ],
    [
      "a cookie name with a space",
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
      "a claim in the subject's header",
      `${SMALLEST}identity: { claims: { x-auth-subject: a } }`,
      "identity.claims.x-auth-subject",
    ],
    [
      "a claim in a reserved header",
      `${SMALLEST}identity: { claims: { Host: a } }`,
      "identity.claims.Host",
    ],
    ["a method in lower case", route("methods: [get]"), "routes[0].methods[0]"],
    ["TRACE", route("methods: [TRACE]"), "routes[0].methods[0]"],
    ["a host with a port", route("hosts: ['a:80']"), "routes[0].hosts[0]"],
    ["a star in the middle", route("hosts: [a.*.com]"), "routes[0].hosts[0]"],
    [
      "stripping a prefix that the path lacks",
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
      "an invalid upstream name",
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

  test("two routes with one name, and two that match the same requests", async () => {
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
    ["a path with a necessary encoding", route("path: /a%20b")],
    [
      "an exact path and its prefix",
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
    ["a port without an admin listener", server('listen: "127.0.0.1:9464"').concat("admin: off\n")],
    [
      "own identity headers",
      `${SMALLEST}identity: { headers: { subject: X-User, groups: X-Groups } }\n`,
    ],
    ["networks", server('trustedProxies: ["10.0.0.0/8", "::1", "fd00::/8"]')],
  ])("%s", async (_what, text) => {
    expect(await problemsOf(text)).toEqual([]);
  });

  test("a version from an existing variable, and one queried from a backend", async () => {
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

  test("host names in any case, stored in lower case", async () => {
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

/**
 * What `docs/reference/configuration.md` says beyond the tables generated from the schema: an example above the tables
 * of a section, and notes below them.
 */

/** By section; `test/docs/named-things.test.ts` checks all of them as one configuration. */
export const EXAMPLES: Readonly<Record<string, string>> = {
  server: `server:
  tls: { certFile: tls.crt, keyFile: tls.key }
  trustedProxies: ["10.244.0.0/16"]
`,
  admin: `admin:
  probes: [{ path: /healthz, upstream: app }]
`,
  login: `login:
  throttle: { attempts: 10, ban: 15m }
`,
  users: `users:
  - { kind: file, path: users.yaml }
`,
  tokens: `tokens:
  keys: keys
  trusted: [{ issuer: https://id.example.com, audience: orders, discovery: true, algorithms: [RS256] }]
`,
  shared: `shared:
  { kind: redis, url: rediss://state.example.com:6379, password: "\${file:state-password}" }
`,
  version: `version: { upstream: app, path: /version }
`,
  browser: `browser:
  page: { title: Orders }
`,
  decisions: `decisions: { from: ["10.0.0.0/8"] }
`,
  apiKeys: `apiKeys:
  - { kind: file, path: api-keys.yaml }
`,
  metadata: `metadata: { resource: "https://orders.example.com" }
`,
  identity: `identity:
  headers: oauth2-proxy
  claims: { X-Tenant: tenant }
`,
  cors: `cors: { origins: ["https://app.example.com"] }
`,
  networks: `networks:
  office: ["203.0.113.0/24", "2001:db8::/32"]
`,
  authorization: `authorization:
  opa: { kind: http, url: "https://opa.example.com/allow" }
`,
  routes: `routes:
  - { name: docs, path: /docs/, auth: none, upstream: app }
  - { name: app, allow: [office], authorize: opa, upstream: app }
`,
  upstreams: `upstreams:
  app: { targets: ["http://10.0.0.1:8080", "http://10.0.0.2:8080"] }
`,
  log: `log:
  access: errors
  fields: { user_agent: "header:User-Agent" }
`,
};

/** By section: what belongs to several keys, or is too long for a cell. */
export const NOTES: Readonly<Record<string, string>> = {
  server: `**Proxies.** Behind a trusted proxy, the client is the last address of \`X-Forwarded-For\`, with or without port, that is not in
\`trustedProxies\`; no other header counts. [Other headers in which proxies report a request](http.md#headers-towards-the-backend), such as
\`X-Original-URL\`, pass only if \`trustedHeaders\` names them, in exactly this spelling: most proxies pass on what they do not know, so a
client could name a protected path in them. List only headers that your proxy sets itself or removes.

**PROXY protocol.** The header comes before TLS, and within \`timeouts.header\`. Its address is the client's. Connections
that are not from \`trustedProxies\` must not have one. For \`LOCAL\` and \`UNKNOWN\`, such as health checks, the proxy's own address counts, and
its \`X-Forwarded-*\` is not trusted.

**Underscores.** CGI, WSGI and PHP read \`_\` and \`-\` in names as the same. So Sallyport always drops a header with \`_\` that could be taken
for one of its own. Of the others, \`drop\` also hides them from routes, and \`reject\` answers 400 (\`underscore_header\`). Trailers count,
too.

Without TLS, HTTP/2 is by prior knowledge. See [HTTP/2](http.md#http2), [what connections cost](../operations.md#sizing), and [which TLS
versions and certificates count](../security-model.md#tls).`,

  admin: `See [who may use it](../operations.md#the-admin-listener), and [probes](../operations.md#probes).`,

  login: `An address is *known* if the user has logged in from it in the last 30 days.

- After \`account.attempts\` failures of a name in a row, each unknown address gets three attempts, and each known one \`account.attempts\` in
  a row.
- \`global\` applies to unknown addresses only; one that failed recently may use half to three quarters of it.
- In the queue, known addresses come first and displace unknown ones, as do those with fewer waiting and failed logins.

A throttled login gets 429, one that finds the queue full 503.`,

  users: `### The users file

Passwords are argon2id, bcrypt (\`$2a$\`, \`$2b$\`, \`$2y$\`, with a cost of 8 to 16) or scrypt (\`$scrypt$ln=…\`) hashes, others are errors;
\`sallyport hash-password\` prints one. See [the other kinds](../users.md), and [limits of files](http.md#limits).

\`\`\`yaml
# users.yaml
users:
  alice:
    password: $argon2id$v=19$m=19456,t=2,p=1$Kt3j+6RCH4Uzm/FCF9nyBg$TOkW11DbwGZ8LUduAE5mV78TsTPnXTTOUO0DCwgEHGk
    groups: [sales, admin]    # default: none
    disabled: false           # default
\`\`\``,

  tokens: `**Keys of an issuer** come from one of \`discovery: true\`, \`jwks.url\` and \`jwks.file\`, over \`https\`, or over \`http\` from the loopback. Shared
secrets in them are refused. A discovery document must name exactly this \`issuer\`; its \`jwks_uri\` may be on another host, but must not name
an IP address or the loopback unless the issuer does. Sallyport follows no redirect, and sends the bearer token to the configured server
alone. Operations says [when keys are fetched](../operations.md#changes), and [what happens if that
fails](../operations.md#when-an-identity-provider-is-down).

**Claims.** Write a name as it is in the token; if no claim has the whole name, a dot leads into an object: \`realm_access.roles\`. With
\`subject: email\`, require \`email_verified\`, unless callers cannot choose their address.

**Other servers.** For a JWT of an issuer with keys, only these count, and no server sees it. \`introspection\` is for tokens that are not JWTs.
It refuses those that are inactive, of a \`token_type\` other than Bearer and DPoP, or without \`sub\` (or \`claims.subject\`). \`tokenReview\`
is for the rest. Routes can require the \`aud\` that the server reports (of a TokenReview, \`status.audiences\`). No yes counts after a no, a
revocation or \`exp\`; what a token without \`exp\` has opened ends after an hour. If the server cannot be asked, the response is 503, never
401. Each thread has at most 256 such requests in flight, and 64 for one client; others get 503, so set a rate limit by address where strangers
can send garbage.

See [key rotation](../how-to/rotate-keys.md), [assertions](../assertion.md) and, about \`proof\`, [bound tokens](../proofs.md).`,

  shared: `See [what replicas exchange, and how sentinels and clusters work](../scale.md).`,

  browser: `Needs \`users\` or \`providers\`. See [pages, sessions and providers](../browser.md).`,

  decisions: `See [the configuration of each proxy](../decisions.md).`,

  apiKeys: `### The file of API keys

\`sallyport api-key create ci --groups deploy --scopes orders:read --expires 90d\` adds an entry and prints the key, once. Changes are in force
within a second, also for what runs; another \`subject\` ends it. A broken file changes nothing. In the log, \`subject\` names the caller, and
\`fields: { api_key: "claim:api_key" }\` the key. Routes that take one have \`tokenFrom: [{ header: Authorization }, { apiKey: X-API-Key }]\`;
with \`{ apiKey: Authorization }\` it is \`Bearer sp_…\`.

\`\`\`yaml
# api-keys.yaml
keys:
  ci:
    hash: sha256:38650e417885b3e12b809f7654cfb3a0fe4086a7f84f1d994a550f6a18fc1272
    subject: ci    # default: the name
    groups: [deploy]
    scopes: ["orders:read"]
    expires: 2027-02-22T10:00:00Z    # default: never
    disabled: false
    created: 2026-11-24T10:00:00Z    # a revocation with a time spares newer keys
\`\`\`

In PostgreSQL (11 or later), keys are rows of a table, with columns of these names beside \`name\`. Sallyport reads 20,000 at most, every half
second. While the database is away, or a row is wrong, the last keys count; after a start without it, keys get 503 until it was read.

\`\`\`sql
CREATE TABLE api_keys (
  name     text PRIMARY KEY,
  hash     text NOT NULL,    -- sha256:… of the whole key, as api-key create writes it
  subject  text,
  groups   text[],
  scopes   text[],
  expires  timestamptz,
  disabled boolean NOT NULL DEFAULT false,
  created  timestamptz DEFAULT now()
);
GRANT SELECT ON api_keys TO sallyport;
\`\`\``,

  metadata: `See [an MCP server](../recipes/mcp.md).`,

  identity: `\`oauth2-proxy\` sets \`X-Forwarded-User\` and \`-Groups\`, \`kube-rbac-proxy\` \`X-Remote-User\` and \`-Groups\`, neither the
issuer, \`sallyport\` [these](http.md#headers-towards-the-backend). Sallyport removes the headers in \`claims\` from client requests, like the
others.`,

  cors: `Sallyport answers preflight requests for every path, without a token; the backend does not get them. Its own responses have the headers
that let scripts read them, with \`Retry-After\`, \`RateLimit\`, \`RateLimit-Policy\`, \`WWW-Authenticate\`, \`Allow\`, \`Proxy-Status\` and
\`X-Request-Id\`; so has a backend's response, unless it has its own \`Access-Control-Allow-Origin\`. Tokens in \`Authorization\`
need no \`credentials\`.`,

  authorization: `Sallyport asks an entry for routes that name it in \`authorize\`, after \`require\`. A denial is 403; an unavailable server is 503 (with
\`onError: deny\`, 403). Without an answer, nobody passes, except by an earlier yes within \`staleFor\`, which a no, a revocation or the end
of the token ends at once.

- **\`subjectAccessReview\`** asks whether the caller, with subject and groups, may use \`resource\` or, without one, the path. The verb follows
  the method: \`get\` for GET and HEAD, \`create\`, \`update\`, \`patch\`, \`delete\`, otherwise \`*\`. Only callers from \`issuers\` can pass: the same
  subject from another issuer is somebody else. If a request has several values of \`\${query:NAME}\` or \`\${header:NAME}\`, the caller needs
  permission for all. One without a value, with one longer than 253 characters, or with \`;\` in the query gets 403.
- **\`http\`** gets \`{ method, path, host, client, subject, groups, issuer, scopes, claims }\` by POST, without the query, and with the claims
  that the configuration names, \`sid\` and \`idp_sub\`. 2xx allows, 4xx except 408 and 429 denies; any other status counts as unavailable.`,

  routes: `The most specific route wins: an exact host before \`*.example.com\` before any host, then the longest path, then a route with methods, then
the one with more \`headers\`. \`sallyport check\` prints the order. A route has one of \`path\`, \`exact\` and \`regex\`. Without \`routes\`, every
request requires a token. [Some names](metrics.md) are reserved. With \`mode: monitor\`, you [roll it out step by
step](../operations.md#put-it-in-front-of-a-running-backend).

### Paths

\`path: /admin\` matches it and everything below it. Wildcards, parameters and expressions there (\`/admin/*\`, \`/users/:id\`, \`^/api$\`) are
errors that say what to write instead. For the characters themselves, write \`%2A\` for \`*\` and, where they look like these, \`%3A\` for \`:\`,
\`%24\` for \`$\`, \`%2B\` for \`+\`.

\`paths: encoded\` also accepts encoded delimiters, as in RabbitMQ (\`/api/queues/%2F/orders\`), GitLab and
[npm](../backends.md#names-with-slashes-in-paths); \`asSent\` also \`//\`, \`;\`, and \`[ ] { } | ^\`, as in matrix parameters. The backend gets
them unchanged; encoded letters, digits and \`- . _ ~\` are decoded, as on other routes. Dot segments, double encoding, control characters
and bytes that are not UTF-8 still get 400. So does a path that would match another route if the backend decoded it, merged its slashes, cut
parameters off, or took what follows a \`//\` at the beginning for a host.

### Regular expressions

\`regex: '/users/[0-9]+/orders'\` matches the whole path. In single quotes, YAML keeps backslashes.

- It supports \`.\`, classes such as \`[a-z]\` and \`[^/]\`, \`\\d\`, \`\\w\`, \`\\\` before punctuation, \`(…)\`, \`|\`, \`*\`, \`+\`, \`?\`, \`{2}\`, \`{2,}\` and
  \`{2,5}\`, as RE2 and PCRE do, but no lookaround, back-references and flags, and no more than 1,000 states. \`^\` and \`$\` are errors:
  \`/users/[0-9]+\` does not match \`/users/1/\` anyway; add \`/?\` or \`(/.*)?\` for that.
- Like \`path\`, it sees the canonical path without the query, case-sensitively, with @ for %40, and %20 for a space. \`.\` also matches a
  slash. With \`paths: encoded\`, a path with %2F must match both as it is and decoded: \`.+\` does, \`[^/]+\` does not.
- Its rank is the length of the text with which all its paths begin: \`/users/[0-9]+\` ranks like \`/users/\`. Among equals, \`exact\` comes
  first, then \`regex\`, in the order of the file, then \`path\`. So \`/.*\\.css\` matches nothing below \`path: /admin\`.
- \`check\` warns, with an example, if an expression matches a request that another route would refuse, or if a longer path matches one that a
  stricter expression covers.

### Headers that a request must have

\`headers\` match if the request has exactly one field of each name, with exactly this value. Clients control headers: \`check\` warns if one
avoids the token requirement, or if a route by \`headers\` is stricter than the one to the same upstream that counts without them. A backend
may find the value where Sallyport does not: in one of several fields, in a list, in another case or spelling. If the route that Sallyport
finds would then admit callers whom the other one refuses, the request gets 400 (\`ambiguous_header\`). Backends that also read \`1\` or \`yes\`
as \`true\` need the same requirements on both routes. Trailers with these names do not reach the backend. Neither do
headers that \`Connection\` names, so they do not count.

### Where tokens may be

A token may be in any one of the places in \`tokenFrom\`: two tokens get 401, and so does a repeated cookie or query parameter. Values count as
they are, with quotes and encodings. The backend gets the remaining cookies, query and subprotocols, byte for byte.

- **Cookies** come with requests from any page. So WebSockets and methods other than GET, HEAD and OPTIONS need
  \`Sec-Fetch-Site: same-origin\`, or an \`Origin\` that is the request's own or in \`cors.origins\` with \`cors.credentials\`; otherwise they get
  403 (\`cross_site\`). A proxy that ends TLS belongs into \`server.trustedProxies\`, for its \`X-Forwarded-Proto\`: otherwise pages of \`http://\`
  count, too.
- **Responses** to a caller whose token is not in \`Authorization\` get \`Cache-Control: private\` (RFC 9111 §3.5), unless the backend's own
  \`Cache-Control\` says whether shared caches may store them.
- **WebSockets**: if one offers \`bearer\` and the backend selects no subprotocol, Sallyport selects \`bearer\`; the Kubernetes form needs another
  subprotocol next to it.
- **Queries** end up in logs of proxies and in browser histories: prefer the other places. On all routes, Sallyport removes these parameters
  from \`Referer\` and other headers that repeat a URL. Responses on such routes, and all of Sallyport's own, get
  \`Referrer-Policy: no-referrer\`, unless the backend sets a policy.

### Requirements and limits

Claims are compared with their type (\`true\` is not \`"true"\`); a list must contain the value, and an object never equals anything. The
challenge of a 403 names the scopes of the route, and nothing else; \`sallyport explain\` shows what failed. \`allow\` and \`deny\` apply to the
client's address, on public routes, too; \`deny\` wins.

\`rateLimit\` and \`concurrency\` count in all threads, and with \`shared\` in all replicas. With \`auth: optional\`, limits by \`subject\` count
callers without a token by address. With \`by: address\` (IPv6: a /64), requests count before the token is verified. \`concurrency\` counts
requests, and WebSockets, from the decision until the response has ended.

### Rewriting

\`rewrite\` and \`hostHeader\` must not bypass another route. With \`path: /static\`, \`auth: none\` and \`stripPrefix: /static\`, a request for
\`/static/admin\` reaches the backend as \`/admin\`. So \`check\` and \`serve\` reject two routes that lead to the same method, host and path of the
same backend (one upstream, or two that share a target) if some caller may use only one of them. Monitor mode counts as open. You can:

- Rewrite to a path that no stricter route matches: add \`addPrefix: /assets\`.
- Require the same in both routes.
- If you intend this, add a route for the backend's path that requires no more: \`{ path: /assets, auth: none }\`.

[Redirects and cookies](../backends.md#redirects-and-cookies-under-a-prefix) are mapped back if they point to this backend, by a path, the
\`Host\` that it got, or the address of a target; with \`responses: true\`, also paths that already begin with the prefix.

### Changing headers

\`set\` replaces every field of this name, in any spelling that a backend could read as the same name (\`X_Tenant\`), \`add\` adds a field,
\`remove\` removes all of them. Values may contain \`\${claim:NAME}\`, \`\${subject}\`, \`\${request_id}\` and \`\${client}\`; everything in these except
printable ASCII is percent-encoded, and so are \`%\` and a comma within a claim. If one does not exist, such as the subject on a public route,
Sallyport omits the header and removes the client's. You cannot change headers that frame the message, end at the proxy, or name the caller.
\`responseHeaders\` also sets and adds headers of Sallyport's own responses on the route, but does not replace them. \`sallyport explain\` does
not show values, since they may be secrets.

### Mirroring

The copy is what the backend gets, sent when the request is complete. It never delays the request, its response is ignored, and it is never
retried. Sallyport drops it, and counts that in \`sallyport_mirrored_requests_total\`, if the body is longer than \`bodyBytes\` or takes longer
than 10 seconds, if all \`connections\` of that upstream are in use, or if copies already take an eighth of \`server.limits.bufferedBytes\`.
\`timeouts.response\` limits the whole response. Trailers and WebSockets are not mirrored. The other upstream learns who is calling, so trust it
as much as the first; side effects of a POST happen twice.`,

  upstreams: `**Ejection.** A target is ejected at once if it cannot be connected to, otherwise after \`failures\` in a row: requests that time out or break
off, or a status of 500 or more. Afterwards, it gets one request at a time until it has answered one, and for another \`ejection.for\` only
requests that can be retried. If no target remains, all are used.

**Balance.** \`roundRobin\`, \`leastRequests\` (fewest in flight), \`random2\` (the less busy of two random targets) and \`clientHash\` (a client
stays with its target) respect \`weight\`; \`first\` takes the first usable target.

**Retries.** A request, or a WebSocket handshake, goes to another target if it was not sent, or if its connection broke before the response
and its method is idempotent. \`routes[].retry\` changes that. After the first ten, Sallyport retries at most 20 % of the requests.

**Names.** A name is one target: each new connection resolves it anew, and uses the first address that accepts it. With \`resolve\`, each of
at most 256 addresses is a target, such as each pod of a headless Service. Sallyport asks the system's resolver every \`interval\`, and
\`servers\`, which need the full name, when the TTL has expired, at most every second. After \`staleFor\`, requests get 502 (\`dns\`).
Certificates and \`hostHeader: target\` are about the name.

Each thread has its own connections, queue and ejections. See [which request is next, and which gets
503](../operations.md#when-a-backend-is-full), and [HTTP/2 and gRPC](../http2.md).`,

  log: `Values of \`fields\` are cut at 512 characters, and secrets in them are masked. See [the other fields](log.md).`,
};

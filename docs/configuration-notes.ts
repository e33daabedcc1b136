/**
 * What `docs/reference/configuration.md` says beyond the tables generated from the schema: below the table of a section, and at the end.
 */

/** By section: a fact that belongs to several keys, or is too long for a cell. */ export const NOTES: Readonly<
  Record<string, string>
> = {
  server: `With \`server.http2: true\`, TLS clients can select HTTP/2 by ALPN; with \`tls:
off\`, clients can use it on the same port by prior knowledge. Sallyport treats HTTP/2 requests like HTTP/1.1 requests: decisions, limits and time limits are the same, but those that HTTP/1.1 applies to a connection apply to each request. \`limits.streams\` bounds the concurrent requests on one connection. Clients can open WebSockets over HTTP/2 (RFC 8441), as Chromium and Firefox do. After a reload to \`false\`,
open HTTP/2 connections close once their requests are answered.

With \`server.proxyProtocol: accept\`, every connection from \`server.trustedProxies\` must begin with a PROXY protocol header, before TLS;
other connections must not. Limits, routes and the log use the client address in this header; Sallyport ignores its TLVs. It closes a
connection without a valid header within \`timeouts.header\`. If a proxy connects on its own behalf (\`LOCAL\`, \`UNKNOWN\`), for example
for a health check, Sallyport uses the proxy's own address and does not trust its \`X-Forwarded-*\`.

CGI, WSGI and PHP read \`_\` and \`-\` in header names as the same. Sallyport always drops a header with \`_\` that such a backend could take for
one of Sallyport's own. \`server.underscoreHeaders\` says what happens to the others: \`drop\` hides them from routes and backends, \`reject\`
answers 400 (\`underscore_header\`). The same holds for trailers, which only backends of HTTP/2 get: if the answer has already begun,
\`reject\` breaks it off.

Behind a trusted proxy, the client is the last address of \`X-Forwarded-For\`, with or without port, that is not in
\`server.trustedProxies\`; Sallyport reads no other header for this. The backend gets \`X-Forwarded-For\`, \`-Proto\`, \`-Host\`, \`-Port\`,
\`Forwarded\` and \`X-Real-IP\` from a trusted proxy. Other headers in which proxies report a request (\`X-Original-URL\`, \`X-Rewrite-URL\`,
\`X-Forwarded-Prefix\`, \`X-Forwarded-Uri\`, \`SCRIPT_NAME\`, \`CF-Connecting-IP\`, \`Client-Cert\` and the like) pass only if \`server.trustedHeaders\` names them, in
exactly this spelling: most proxies pass on what they do not know, so a client could name a protected path in them on a public route. List
only headers that your proxy sets itself or removes. \`server.tls.clientCertificates.caFile\` must include the root
certificates. [Operations](../operations.md#sizing) says what connections cost, and how many fit in a container. The [security
model](../security-model.md#tls) lists TLS versions and suites, and says which certificates Sallyport refuses.`,

  login: `A *known* address is one that the user has logged in from in the last 30 days.

- Once a user has failed \`login.throttle.account.attempts\` times in a row, each unknown address gets three attempts, and each known
  address gets \`login.throttle.account.attempts\` in a row.
- The budget of \`login.throttle.global\` applies to unknown addresses only. An address that failed recently may use between half and
  three quarters of it.
- In the hashing queue, known addresses come first and displace unknown ones, as do addresses with fewer waiting and failed logins.

A throttled login gets 429; a login that finds the queue full gets 503: [troubleshooting](../troubleshooting.md#the-login-is-throttled).`,

  tokens: `\`tokens.issuer\` is also the \`realm\` of challenges. [Rotate keys](../how-to/rotate-keys.md) says how to change them.
A key set is fetched over \`https\`, or over \`http\` from the loopback. Shared secrets in a key set are not accepted.

Each issuer with keys needs one of \`tokens.trusted[].discovery: true\`, \`jwks.url\` and \`jwks.file\`. With discovery, the document must
name exactly this \`issuer\`; its \`jwks_uri\` may be an \`https\` URL on another host, but must not name an IP address or the loopback
unless the issuer does so as well. Sallyport follows no redirects, and sends the bearer token only to the configured server.
\`Cache-Control\` determines the lifetime of the keys, from 1 minute to 1 hour; the default is 10 minutes. Sallyport refetches them before
nine tenths of the lifetime have passed. [Operations](../operations.md#when-an-identity-provider-is-down) says what happens if fetches fail.

Write the name of a claim as it is in the token. If no claim has the whole name, a dot leads into an object: \`realm_access.roles\`. With
\`tokens.trusted[].claims.subject: email\`, make sure that callers cannot choose their address: require \`email_verified\`.

If a JWT names an issuer with keys, Sallyport verifies it with these keys and sends it to no other server. It uses \`introspection\` (RFC 7662)
for tokens that are not JWTs, and refuses those that are inactive, of a \`token_type\` other than Bearer and DPoP, or without \`sub\` (or
\`claims.subject\`). A token that is bound to a key (\`cnf\`, RFC 7800) is refused unless \`proof\` says otherwise: [proofs](../proofs.md). It uses \`tokenReview\` for all remaining tokens. The claim \`aud\` of such a caller, which a
route can require, is what the server reports: \`aud\` of the introspection, \`status.audiences\` of the TokenReview. Sallyport caches a
yes for \`cache\`, but never beyond the token's \`exp\`; a revocation takes effect at once. Connections that a token without \`exp\` has
opened end after an hour. If a server is unavailable, the response is 503, never 401. Each thread has at most 256 of these requests in
flight, at most 64 of them for one client, and divides them fairly. Beyond that, the response is also 503, so set a rate limit by address
on routes where strangers can send garbage.`,

  version: `Give at most one of \`version.text\`, \`.env\`, \`.file\` and \`.upstream\`. A version is \`<major>.<minor>.<patch>\`. An upstream's response
is cached for 10 seconds.`,

  identity: `\`oauth2-proxy\` sets \`X-Forwarded-User\` and \`-Groups\`, \`kube-rbac-proxy\` sets \`X-Remote-User\` and \`-Groups\`; neither names the issuer. [The HTTP reference](http.md#headers-towards-the-backend) lists the headers of \`sallyport\`. Sallyport removes the headers in \`identity.claims\` from client requests, like the others.`,

  cors: `With \`cors\`, Sallyport answers browsers' preflight requests for every path, without a token; the backend does not get them. All of Sallyport's own responses, including a 401 and the login, have the headers that let scripts read them, and their \`Retry-After\`, \`RateLimit\`, \`RateLimit-Policy\`, \`WWW-Authenticate\`, \`Allow\`, \`Proxy-Status\` and \`X-Request-Id\`, whatever \`exposeHeaders\` names. Sallyport adds these headers to a backend's response unless that has its own \`Access-Control-Allow-Origin\`. Scripts send the token in \`Authorization\`, which needs no \`credentials\`.`,

  networks: `A name stands for its networks in \`routes[].allow\` and \`routes[].deny\`: \`networks: { office: ["203.0.113.0/24"] }\`.`,

  routes: `The most specific route wins: an exact host before \`*.example.com\` before any host, then the longest path, then a route with
methods, then the one with more \`headers\`. \`sallyport check\` prints the order. Without \`routes\`, every request requires a token and goes to the only upstream. A route has
either \`path\` or \`exact\`.

With \`mode: monitor\`, Sallyport refuses nothing, and counts what it would refuse: [how to roll it
out](../operations.md#put-it-in-front-of-a-running-backend).

With \`routes[].tokenFrom\`, a token may be in any one of these places: a request with two tokens gets 401, and so does one that repeats the
cookie or query parameter. Sallyport takes values as they are, without removing quotes or encodings. The backend gets the remaining cookies,
query and offered subprotocols, byte for byte.

- **Cookies** come with requests from any page. So WebSockets and methods other than GET, HEAD and OPTIONS need \`Sec-Fetch-Site: same-origin\`, or an
  \`Origin\` that is the request's own or in \`cors.origins\` with \`cors.credentials\`; otherwise they get 403 (\`cross_site\`). The own origin has the
  scheme of \`X-Forwarded-Proto\` of a trusted proxy, else that of the connection. If TLS ends in front of Sallyport, put that proxy into
  \`server.trustedProxies\`: otherwise, with \`server.tls: off\`, pages of \`http://\` count as well as those of \`https://\`.
- **Responses** to a caller whose token is not in \`Authorization\` get \`Cache-Control: private\` (RFC 9111 §3.5), unless the backend's own
  \`Cache-Control\` says whether shared caches may store them.
- **WebSockets**: if one offers \`bearer\` and the backend selects no subprotocol, Sallyport selects \`bearer\`; the Kubernetes form needs another
  subprotocol next to it.
- **Queries** end up in logs of proxies and in browser histories: prefer the other places. If any route takes tokens from a query, Sallyport removes
  these parameters from \`Referer\`, \`Ping-From\`, \`Ping-To\`, \`HX-Current-URL\` and the like and from headers of trusted proxies such as
  \`X-Original-URI\`, on all routes. Answers on such routes, and all of Sallyport's own, get \`Referrer-Policy: no-referrer\`, unless the backend sets
  a policy.

With \`auth: optional\`, Sallyport forwards a request without a token without identity headers; an invalid token gets 401.

The caller must meet everything under \`routes[].require\`. \`claims\` compares values together with their type (\`true\` is not
\`"true"\`); a list must contain the value, and an object never equals anything. The token cache keeps only the claims that the
configuration names. The challenge of a 403 names the scopes of the route, and nothing else; \`sallyport explain\` shows which line failed.

With \`paths: encoded\`, a route also accepts paths with encoded delimiters, as in RabbitMQ (\`/api/queues/%2F/orders\`), GitLab
(\`/projects/group%2Fproject\`) and npm (\`/@scope%2Fname\`); with \`asSent\`, also \`//\`, \`;\`, and \`[ ] { } | ^\`, as in matrix
parameters. The backend gets them unchanged; encoded letters, digits and \`- . _ ~\` are decoded, as on other routes. Dot segments, double
encoding, control characters and bytes that are not UTF-8 still get 400 in any spelling. So does a path that would match another route if
the backend decoded it, merged its slashes, cut parameters off, or took what follows a \`//\` at the beginning for a host: the backend must not read the path differently from Sallyport.

\`headers\` match if the request has exactly one field of each name, with exactly this value. Clients control headers: \`check\` warns if a
client can avoid the token requirement by a header, or if a route by \`headers\` is stricter than the one to the same upstream that the request
would match without them. A backend may find the value where Sallyport does not: in one of several fields, in a list, in another case, in quotes, before
or after a \`;\`, or in a header with \`_\` for \`-\`. If the route that Sallyport finds would then admit callers whom the other one refuses, the request
gets 400 (\`ambiguous_header\`). Backends that also read \`1\` or \`yes\` as \`true\` need the same requirements on both routes. Request trailers
with these names do not reach the backend. \`allow\` and \`deny\` apply to the client's address, which trusted proxies may name;
\`deny\` wins. They also apply to public routes. \`concurrency\` counts requests, including WebSockets, from the decision until the response
has ended, in all workers, and with \`shared\` in all replicas.

With \`mirror\`, Sallyport also sends \`percent\` of the forwarded requests to another upstream. The copy is what the backend gets. Sallyport ignores
the responses, never retries a copy, and never delays a request for it. It sends a copy when the request is complete. It drops the copy, and
counts that in \`sallyport_mirrored_requests_total\`, if the body is larger than \`bodyBytes\` or takes longer than 10 seconds, if all
\`connections\` of that upstream are in use, or if copies already take an eighth of \`server.limits.bufferedBytes\`. \`timeouts.response\`
limits the time for the whole response. Request trailers and WebSockets are not mirrored. The other upstream learns who is calling, so trust
it as much as the first; side effects of a POST there happen twice.

\`routes[].rateLimit\` applies to all threads of a replica together. Without \`shared\`, each replica counts for itself. \`within\` is in
whole seconds. Requests above the limit get 429. With \`auth: optional\`, limits by \`subject\` count callers with a token by subject and
others by address, in \`concurrency\`, too. With \`by: address\` (IPv6: a /64), Sallyport counts requests before it verifies the token.

\`path\` is a plain path: \`path: /admin\` matches it and everything below it. Wildcards, parameters and regular expressions there
(\`/admin/*\`, \`/users/:id\`, \`/users/{id}\`, \`^/api$\`) are errors that say what to write instead. For the character itself, write
\`%2A\` for \`*\`, \`%3A\` for \`:\`, \`%24\` for \`$\`, \`%2B\` for \`+\`. Only \`:\` at the beginning of a segment, \`$\` at the end of
the path, \`.+\` and any \`*\` need it: \`/v1/orders:cancel\` and \`/$metadata\` are paths.

\`regex\` is a regular expression for the whole path, for patterns that a prefix cannot express: \`regex: '/users/[0-9]+/orders'\`. Put it
in single quotes, in which YAML keeps backslashes.

- It supports \`.\`, classes such as \`[a-z]\` and \`[^/]\`, \`\\d\`, \`\\w\`, \`\\\` before a punctuation character, \`(…)\`, \`|\`, \`*\`,
  \`+\`, \`?\`, \`{2}\`, \`{2,}\` and \`{2,5}\`. They have the same meaning as in RE2 and PCRE. Lookaround, back-references and flags are
  not supported.
- Matching takes one table lookup per character of the path. An expression that needs more than 1,000 states is an error.
- \`^\` and \`$\` are errors, since it always matches from the first character to the last: \`/users/[0-9]+\` matches neither \`/users/1/\`
  nor \`/users/1/x\`. Add \`/?\` or \`(/.*)?\` at the end to match these, too.
- It matches against the same path as \`path\` and \`exact\`: the canonical path without the query, case-sensitively, with @ for %40 and %20
  for a space. \`.\` also matches a slash; \`[^/]+\` stays within a segment. With \`paths: encoded\`, a path with %2F must match both as it
  is and decoded, so \`[^/]+\` does not match it and \`.+\` does.
- Its rank is the length of the text with which all its paths begin: \`/users/[0-9]+\` ranks like \`/users/\`. Among equal lengths,
  \`exact\` comes before \`regex\`, and \`regex\` before \`path\`; two expressions of the same length keep the order of the file. So
  Sallyport always tries a longer \`path\` first: \`/.*\\.css\` matches nothing below \`path: /admin\`.
- \`check\` compares routes for overlapping paths. It warns if an expression matches a request that another route would refuse, or if a
  longer path matches one that a stricter expression covers, and shows the request.

\`rewrite\` and \`hostHeader\` must not bypass another route. With \`path: /static\`, \`auth: none\` and \`stripPrefix: /static\`, a request for
\`/static/admin\` reaches the backend as \`/admin\`. So \`check\` and \`serve\` reject a configuration in which two routes lead to the same
method, host and path of the same backend (the same upstream, or two that share a target) and some caller may use only one of
them. Monitor mode counts as open. The message names both routes and both paths. You can:

- Rewrite to a path that no stricter route matches: add \`addPrefix: /assets\`.
- Require the same in both routes.
- If you intend this, add a route for the backend's path that requires no more, such as \`{ path: /assets, auth: none }\` next to a
  catch-all that requires a token.

With \`stripPrefix\`, the backend gets the prefix in \`X-Forwarded-Prefix\`. If a route changes the path or the \`Host\`, Sallyport maps
\`Location\`, \`Content-Location\`, \`Refresh\` and the \`Path\` of cookies back if they point to this backend, by a path, by the \`Host\`
that it got, or by the address of its target; \`rewrite.responses\` turns that on or off. It leaves a path alone that already begins with
the prefix, since the backend has read \`X-Forwarded-Prefix\`; with \`responses: true\`, it maps such a path like any other. It does not
change URLs in bodies. [backends.md](../backends.md) shows how to configure frameworks.

\`requestHeaders\` and \`responseHeaders\`: \`set\` replaces every field of this name, in any spelling that a backend could read as the same
name (\`X_Tenant\`), \`add\` adds a field, \`remove\` removes all of them. Values may contain \`\${claim:NAME}\`, \`\${subject}\`,
\`\${request_id}\` and \`\${client}\`, as well as environment variables. Everything in them except printable ASCII is percent-encoded, and so are \`%\` and a comma within a claim, so a
token cannot add a header. If a value does not exist, such as the subject on a public route, Sallyport omits the header and removes the
client's. You cannot change headers that frame the message, end at the proxy, or name the caller. \`responseHeaders.set\` and \`.add\` also
apply to Sallyport's own responses on the route, such as a 401, but do not replace their headers. \`sallyport explain\` does not show the
values, since they may be secrets.`,

  authorization: `Sallyport asks an entry for routes that name it in \`authorize\`, after checking \`require\`. If it denies the request, the client gets 403; if it is unavailable, 503 (with \`onError:
  deny\`: 403). Without an answer, nobody passes.

- **\`subjectAccessReview\`** asks the Kubernetes API server whether the caller, with subject and groups, may use \`resource\` or, without
  one, the path. The verb follows the method: \`get\` for GET and HEAD, \`create\`, \`update\`, \`patch\`, \`delete\`, otherwise \`*\`. Only
  callers from \`issuers\` can pass: the same subject from another issuer is somebody else. \`\${query:NAME}\` and \`\${header:NAME}\` in
  \`resource\` stand for values from the request. If the request has several, the caller needs permission for all of them. A request without
  a value, with one longer than 253 characters, or with \`;\` in the query gets 403.
- **\`http\`** sends \`{ method, path, host, client, subject, groups, issuer, scopes, claims }\` by POST. 2xx allows the request, 4xx except
  408 and 429 denies it, and any other status counts as unavailable. \`claims\` contains the claims that other parts of the configuration
  name. The query is not sent.`,

  upstreams: `If an upstream has several targets, Sallyport ejects a target for \`ejection.for\` at once if it cannot connect to the target, otherwise after \`ejection.failures\` failures in a row: a request that times out or breaks off, or a status of 500 or more. One request that the target never answers does not eject it. After that time, the target gets one request at a time until it has answered one, and for another \`ejection.for\` only requests that Sallyport can retry. With \`health\`, Sallyport also stops using a target whose checks fail. If no target remains, it uses all. Each thread decides by itself. All kinds of \`balance\` respect \`weight\` except \`first\` (the first usable target in the list): \`roundRobin\`, \`leastRequests\` (fewest in flight), \`random2\` (the less busy of two random targets), \`clientHash\`
  (a client stays with its target).

Sallyport retries a request at another target if it was not sent, or if its connection broke before the response and its method is
idempotent. The same applies to WebSocket handshakes. \`routes[].retry\` changes that. After the first ten, Sallyport retries at most 20 %
of the requests, not counting those that a target has when it is ejected. A name with several addresses is one target: each new connection
resolves it anew, and uses the first address that accepts the connection.

With \`resolve\`, each address of a name is a separate target for balancing, health checks and ejection, such as each pod of a headless
Service. Sallyport asks the system's resolver, with its hosts file and search domains, every \`interval\`. It queries \`resolve.servers\`
whenever the TTL has expired, but at least every \`interval\` and at most every second; they need the full name. Requests in flight to an
address that disappears can finish. If a lookup fails or finds no address, the last known addresses stay in use for \`staleFor\`; after
that, requests get 502 (\`dns\`). Before the first answer, requests wait in the queue. The certificate must still match the name, and
\`hostHeader: target\` still sends it. Sallyport uses at most 256 addresses of a name.

\`<name>\` is 1 to 64 characters of \`a-z 0-9 _ -\`. Each thread has its own connections and its own queue.
[Operations](../operations.md#when-a-backend-is-full) says which request is next, and which gets 503.`,
};

/** The end of the document. */
export const AFTER = `## The users file

Passwords are argon2id, bcrypt (\`$2a$\`, \`$2b$\`, \`$2y$\`, with a cost of 8 to 16) or scrypt (\`$scrypt$ln=…\`) hashes;
\`sallyport hash-password\` prints one. Sallyport refuses plain text, MD5 and SHA-1, with the line number. \`groups\` and \`disabled\` are optional.
The maximum is 8 MiB; [performance](../performance.md#memory-and-processor-time) says what reading takes.

\`\`\`yaml
# users.yaml
users:
  alice:
    password: $argon2id$v=19$m=19456,t=2,p=1$Kt3j+6RCH4Uzm/FCF9nyBg$TOkW11DbwGZ8LUduAE5mV78TsTPnXTTOUO0DCwgEHGk
    groups: [sales, admin]
  bob:
    password: $argon2id$v=19$m=19456,t=2,p=1$yddeH+D82lXX3ZxYA6KtzQ$YrWbSDC42hBoUAyK0HCzpaYQAbKtKaHhBnBQ4ebCJAM
    disabled: true
\`\`\`

## The file of API keys

\`sallyport api-key create ci --groups deploy --scopes orders:read --expires 90d\` adds an entry and prints the key, once. It has 256 random
bits, so a plain SHA-256 is enough. Changes of the file are in force within a second, also for what runs; a broken file changes nothing.
Another \`subject\` ends what runs. With \`created\`, a revocation of the subject with a time covers only keys that are older.
The maximum is 1 MiB. In the log, \`subject\` names the caller, and \`log.fields: { api_key: "claim:api_key" }\` the key. Routes that take
one have \`tokenFrom: [{ header: Authorization }, { apiKey: X-API-Key }]\`; with \`{ apiKey: Authorization }\` it is \`Bearer sp_…\`.

\`\`\`yaml
# api-keys.yaml
keys:
  ci:
    hash: sha256:38650e417885b3e12b809f7654cfb3a0fe4086a7f84f1d994a550f6a18fc1272
    subject: ci                       # default: the name
    groups: [deploy]
    scopes: ["orders:read"]
    expires: 2027-02-22T10:00:00Z     # default: never
    disabled: false
    created: 2026-11-24T10:00:00Z     # for revocations; default, and if it is still to come: not known
\`\`\`

With \`{ kind: postgres, url: "postgres://…", caFile: db-ca.crt }\`, the keys are rows of a table. Its columns are called like the keys above, beside \`name\`, or \`query\` names them so; only
\`name\` and \`hash\` are required. Sallyport reads all of them every half second, 20,000 at most, so that a change is in force within a
second, also for what runs. While the database is away, or a row is wrong, the keys that were read before count; after a start without the
database, keys get 503 until it was read. PostgreSQL 11 or later.

\`\`\`sql
CREATE TABLE api_keys (
  name     text PRIMARY KEY,
  hash     text NOT NULL,           -- sha256:… of the whole key, as api-key create writes it
  subject  text,
  groups   text[],
  scopes   text[],
  expires  timestamptz,
  disabled boolean NOT NULL DEFAULT false,
  created  timestamptz DEFAULT now()
);
GRANT SELECT ON api_keys TO sallyport;
\`\`\`
`;

/**
 * What `docs/reference/configuration.md` says beyond the tables generated from the schema: below the table of a section, and at the end.
 */

/** By section: a fact that belongs to several keys, or is too long for a cell. */
export const NOTES: Readonly<Record<string, string>> = {
  server: `With \`server.http2: true\`, TLS clients may choose HTTP/2 (ALPN), and with \`tls: off\` clients may begin with it on the same
port (prior knowledge). Its requests go the same way as those of HTTP/1.1: decisions, limits and time limits are the same, for each request where
HTTP/1.1 has them for its connection. \`limits.streams\` bounds the requests at once on one connection. WebSockets may be
opened over HTTP/2 (RFC 8441), as Chromium and Firefox do.
After a reload to \`false\`, open HTTP/2 connections close once their requests are answered.

With \`server.proxyProtocol: accept\`, every connection from \`server.trustedProxies\` must begin with a header of the PROXY protocol,
before TLS; others must not. The address in it is the client's, for limits, routes and the log; its TLVs are ignored. Without a sound header
within \`timeouts.header\`, the connection is closed. A proxy that speaks for itself (\`LOCAL\`, \`UNKNOWN\`), such as for a health check,
keeps its own address, and its \`X-Forwarded-*\` are not trusted.

CGI, WSGI and PHP read \`_\` and \`-\` in header names as the same. Sallyport always drops a header with \`_\` that such a backend could take for
one of Sallyport's own. \`server.underscoreHeaders\` says what happens to the others: \`drop\` hides them from routes and backends, \`reject\`
answers 400 (\`underscore_header\`). The same holds for trailers, which only backends of HTTP/2 get: if the answer has already begun,
\`reject\` breaks it off. Envoy has the same three choices (\`headers_with_underscores_action\`); nginx drops by default (\`underscores_in_headers\`).

Behind a trusted proxy, the client is the last address of \`X-Forwarded-For\`, with or without port, that is not in
\`server.trustedProxies\`; no other header names it. \`server.tls.clientCertificates.caFile\` must include the root certificates. What
connections cost, and how many fit in a container: [operations](../operations.md#sizing). TLS versions and suites, and which certificates
are refused: [security model](../security-model.md#tls).`,

  login: `A *known* address is one that the user has logged in from in the last 30 days.

- Once a user has failed \`login.throttle.account.attempts\` times in a row, each unknown address gets three attempts, and each known
  address gets \`login.throttle.account.attempts\` in a row.
- The budget of \`login.throttle.global\` applies to unknown addresses only. An address that failed recently may use between half and
  three quarters of it.
- In the hashing queue, known addresses come first and displace unknown ones, as do addresses with fewer waiting and failed logins.

A throttled login gets 429; a login that finds the queue full gets 503: [troubleshooting](../troubleshooting.md#the-login-is-throttled).`,

  tokens: `\`tokens.issuer\` is also the \`realm\` of challenges. The directory of keys is reloaded when it changes: [operations](../operations.md#keys).
A key set is fetched over \`https\`, or over \`http\` from the loopback. Shared secrets in a key set are not accepted.

Each issuer needs one of \`tokens.trusted[].discovery: true\`, \`jwks.url\` and \`jwks.file\`. With discovery, the document must name exactly
this \`issuer\`; its \`jwks_uri\` may be on another host, by \`https\`, but must not name an IP address or the loopback unless the issuer is
there as well. Redirects are not followed, and the bearer token goes to the configured server alone. Keys are good for what
\`Cache-Control\` says, from 1 minute to 1 hour, and for 10 minutes if it says nothing; they are fetched again before nine tenths of that
time are over. When fetches fail: [operations](../operations.md#when-an-identity-provider-is-down).

A claim is named as it stands in the token. If there is none with the whole name, a dot leads into an object: \`realm_access.roles\`. With
\`tokens.trusted[].claims.subject: email\`, make sure that nobody can choose an address: require \`email_verified\`.

A token that is a JWT and names an issuer with keys is verified with them and shown to nobody. \`introspection\` (RFC 7662) is asked about
tokens that are no JWT: those that are not active, that are bound to a key (\`cnf\`, \`token_type\` other than Bearer), or that name no
\`sub\` (or \`claims.subject\`) are refused. \`tokenReview\` is asked about every token that nobody else claims. A yes is remembered for
\`cache\`, but never longer than the token's \`exp\`; revocation holds at once. What a token without an \`exp\` has opened ends after an
hour. If a server cannot be asked, the answer is 503, never 401. Each thread has at most 256 questions under way, 64 of them because of one client, and shares them fairly. One more is 503, too, so
put a rate limit by address on routes where strangers can send garbage.`,

  version: `Give at most one of \`version.text\`, \`.env\`, \`.file\` and \`.upstream\`. A version is \`<major>.<minor>.<patch>\`. An upstream's response
is cached for 10 seconds.`,

  identity: `\`oauth2-proxy\` sets \`X-Forwarded-User\` and \`-Groups\`, \`kube-rbac-proxy\` sets \`X-Remote-User\` and \`-Groups\`; neither names the
issuer. What \`sallyport\` sets: [headers](http.md#headers-towards-the-backend). The headers
of \`identity.claims\` are removed from clients' requests like the others.`,

  cors: `With \`cors\`, Sallyport answers the preflights of browsers for every path, without a token; the backend does not get them. All of its own
answers, a 401 and the login included, have the fields by which a script may read them. A backend's answer gets them if it has no
\`Access-Control-Allow-Origin\` of its own. Scripts send the token in \`Authorization\`, which needs no \`credentials\`. This protects users'
browsers, not the backend: other clients send any \`Origin\`.`,

  networks: `A name stands for its networks in \`routes[].allow\` and \`routes[].deny\`: \`networks: { office: ["203.0.113.0/24"] }\`.`,

  routes: `The most specific route wins: an exact host before \`*.example.com\` before any host, then the longest path, then a route with
methods, then the one with more \`headers\`. \`sallyport check\` prints the order. Without \`routes\`, every request requires a token and goes to the only upstream. A route has
either \`path\` or \`exact\`.

With \`mode: monitor\`, Sallyport refuses nothing. It forwards requests that it would refuse without identity headers, and requests that are
only over the rate limit unchanged. Both count as \`would_deny\`: [how to roll it out](../operations.md#put-it-in-front-of-a-running-backend).

With \`routes[].tokenFrom\`, a token may be in each of these places, but only in one at a time: two tokens are 401, and so is a cookie or a query
field that is there twice. Values count as they stand, without quotes or encodings. The backend gets the rest of the cookies, of the
query and of the offered protocols, byte for byte. A cookie is sent by browsers whatever page asks for it, so with one, methods other than GET,
HEAD and OPTIONS and WebSockets need \`Sec-Fetch-Site: same-origin\`, or an \`Origin\` that is the request's own or one of \`cors.origins\` with
\`cors.credentials\`; otherwise they get 403 (\`cross_site\`). If the backend says nothing else, answers to callers get \`Cache-Control: private\`.
A WebSocket that offers \`bearer\` and gets no protocol from the backend is answered \`bearer\`; the form of Kubernetes needs another protocol beside it. A token
in a query ends up in the logs of proxies in front and in histories: prefer the other places.

With \`auth: optional\`, a request without a token is forwarded without identity headers; a bad token is 401.

Everything under \`routes[].require\` must hold. \`claims\` compares values with their type (\`true\` is not \`"true"\`); a list must contain
the value, and an object is never equal to anything. A remembered token keeps only the claims that the configuration names. A 403 names the scopes of the
route in its challenge, and tells nothing else; \`sallyport explain\` shows which line failed.

With \`paths: encoded\`, a route also takes paths with encoded delimiters, as of RabbitMQ (\`/api/queues/%2F/orders\`), GitLab
(\`/projects/group%2Fproject\`) and npm (\`/@scope%2Fname\`); with \`asSent\`, also \`//\`, \`;\`, \`[ ] { } | ^\`, such as matrix parameters. The
backend gets them as they are; encoded letters, digits and \`- . _ ~\` are decoded as everywhere. Dot segments, double encoding, control
characters and octets that are not UTF-8 are 400 in any spelling. So is a path that would lead to another route if the backend
decoded it, merged its slashes, or cut parameters off: what is decided and what is done are one.

\`headers\` match if the request has one field of each name, with exactly this value. Clients choose headers: \`check\` warns if a header
leads around a token. \`allow\` and \`deny\` look at the client, behind trusted proxies at the one that they name; \`deny\` wins. They also
hold for public routes. \`concurrency\` counts requests from the decision until the answer has ended, WebSockets too,
in all workers, and with \`shared\` in all replicas.

With \`mirror\`, \`percent\` of the requests that are forwarded also go to another upstream, to try a new version with real traffic: the same
method, path, query, headers and body, with the same identity, and with the same tokens removed. Its answers are ignored, nothing is repeated, and no request waits
for it. A copy is sent when the request is complete. It is given up, and counted in \`sallyport_mirrored_requests_total\`, if the
body is larger than \`bodyBytes\` or takes longer than 10 seconds, if all \`connections\` of that upstream are in use, or if copies
already take an eighth of \`server.limits.bufferedBytes\`. \`timeouts.response\` is the time for its whole answer. Trailers of requests and
WebSockets are not mirrored. The other upstream learns who is calling, so trust it as the first; what it does with a POST happens twice.

\`routes[].rateLimit\` counts in all threads of a replica together, and each replica for itself, unless \`shared\` adds them up. \`within\` is in whole seconds. Requests beyond the limit get 429.
With \`by: address\` (IPv6: a /64), requests are counted before the token is verified.

A path is a plain path: \`path: /admin\` takes everything below it. Wildcards, parameters and regular expressions there (\`/admin/*\`,
\`/users/:id\`, \`/users/{id}\`, \`^/api$\`) are errors that say what to write instead. For the character itself, write
\`%2A\` for \`*\`, \`%3A\` for \`:\`, \`%24\` for \`$\`, \`%2B\` for \`+\`. Only \`:\` at the beginning of a segment, \`$\` at the end of the path,
\`.+\` and any \`*\` need it: \`/v1/orders:cancel\` and \`/$metadata\` are paths.

\`regex\` takes a regular expression that matches the whole path, for what no prefix can say: \`regex: '/users/[0-9]+/orders'\`. Put it in
single quotes, in which YAML keeps backslashes.

- It knows \`.\`, classes such as \`[a-z]\` and \`[^/]\`, \`\\d\`, \`\\w\`, \`\\\` before a sign, \`(…)\`, \`|\`, \`*\`, \`+\`, \`?\`, \`{2}\`, \`{2,}\` and \`{2,5}\`. They
  mean what they mean in RE2 and PCRE. There is no lookaround, no back-reference and no flag.
- It is compiled into a table at start and at reload. A request costs one look into it for each character of its path, so no path makes
  it slow. An expression that would need more than 1,000 states is an error.
- \`^\` and \`$\` are errors, since it matches from the first character to the last: \`/users/[0-9]+\` matches neither \`/users/1/\` nor
  \`/users/1/x\`. End with \`/?\` or \`(/.*)?\` to take these, too.
- It is compared with the same path as \`path\` and \`exact\`: the canonical one, without the query, in the case in which it was sent, with
  @ for %40 and %20 for a blank. \`.\` also matches a slash; \`[^/]+\` stays within a segment. With \`paths: encoded\`, a path with %2F must match as it
  is and decoded, so \`[^/]+\` refuses it and \`.+\` takes it.
- It ranks by the text with which all its paths begin: \`/users/[0-9]+\` as \`/users/\`. Of the same length, \`exact\` comes before \`regex\`, and
  that before \`path\`; two expressions of the same length stay in the order of the file. So a longer \`path\` is always tried first: \`/.*\\.css\` takes nothing below
  \`path: /admin\`.
- \`check\` compares all paths that two routes match. It warns if an expression takes a request from a route that would refuse it, or
  if a longer path takes one from a stricter expression, and shows the request.

\`rewrite\` and \`hostHeader\` must not bypass another route. With \`path: /static\`, \`auth: none\` and \`stripPrefix: /static\`, a request for
\`/static/admin\` reaches the backend as \`/admin\`. So \`check\` and \`serve\` reject a configuration in which two routes lead to the same
method, host and path of the same backend (the same upstream, or two that share a target) and some caller may use only one of
them. Monitor mode counts as open. The message names both routes and both paths. You can:

- Rewrite to a path that no stricter route matches: add \`addPrefix: /assets\`.
- Require the same in both routes.
- If it is intended, add a route for the backend's path that requires no more, such as \`{ path: /assets, auth: none }\` next to a
  catch-all that requires a token.

With \`stripPrefix\`, the backend learns the prefix from \`X-Forwarded-Prefix\`. Where the path or the \`Host\` is changed, \`Location\`,
\`Content-Location\`, \`Refresh\` and the \`Path\` of cookies are mapped back, if they lead to this backend; \`rewrite.responses\` turns that on and
off. A path that begins with the prefix already stays, since the backend has read \`X-Forwarded-Prefix\`; with \`responses: true\`, it is
mapped like any other. Addresses in bodies are not changed. [backends.md](../backends.md) says what frameworks have to be told.

\`requestHeaders\` and \`responseHeaders\`: \`set\` replaces every field of the name in any spelling that a backend could take for it
(\`X_Tenant\`), \`add\` adds a field, \`remove\` removes all. A value may hold \`\${claim:NAME}\`, \`\${subject}\`, \`\${request_id}\` and \`\${client}\` beside variables of
the environment. Anything in them but printable ASCII is percent-encoded, so no token can add a header. Where a value does not
exist, such as the subject on a public route, the header is left out, the client's as well. Headers that frame the message,
end at the proxy, or tell who is calling cannot be changed. \`responseHeaders.set\` and \`.add\` also hold for Sallyport's own answers on
the route, such as a 401, whose own headers stay. Values are not shown by \`sallyport explain\`, since they may be secrets.

Routes without \`rewrite\` never collide: each request has one route, and the backend gets the path that was checked.`,

  authorization: `An entry is asked after \`require\`, for routes that name it with \`authorize\`. What it forbids is 403; if it cannot be asked,
503 (\`onError: deny\`: 403). Nobody passes for want of an answer.

- **\`subjectAccessReview\`** asks the API server of Kubernetes about the caller's subject and groups, without \`resource\` about the path, and
  with the verb of the method: \`get\` for GET and HEAD, \`create\`, \`update\`, \`patch\`, \`delete\`, else \`*\`. Only callers of \`issuers\` can
  pass: the same subject of another issuer is somebody else. \`\${query:NAME}\` and \`\${header:NAME}\` in \`resource\` stand for values of the
  request. If it brings several, the caller needs all of them; none, one that is longer than 253 characters, or a query with \`;\`, is 403.
- **\`http\`** sends \`{ method, path, host, client, subject, groups, issuer, scopes, claims }\` by POST. 2xx allows, 4xx forbids (but 408 and 429),
  and anything else is no answer. \`claims\` holds those that the configuration names elsewhere. The query is not sent.`,

  upstreams: `Of several targets, one that cannot be reached is left out for \`ejection.for\` at once, and so is one that answers nothing from when a
request is sent until it times out or is broken off; any other after \`ejection.failures\` failures in a row. When its time is over, it gets
one request at a time until it has answered, and for another \`ejection.for\` only such as can be sent again. So a target that dies costs the requests that it had,
and one that stays dead costs no more. With \`health\`, a target whose checks fail is
left out, too. If none remains, all are used. Each thread checks by itself. \`weight\` counts in every \`balance\`: \`roundRobin\`,
\`leastRequests\` (fewest in flight), \`random2\` (the one with fewer of two chosen by chance), \`clientHash\` (a client stays at its target), but
in \`first\` (the first in the list that is used).

A request that was not sent goes to another target. So does one whose connection broke before the answer, if its method is idempotent. That holds for the
handshakes of WebSockets, too. \`routes[].retry\` changes that; at most 20 % of the requests are sent again, after a first ten, besides those that a target has when it is left out. A name with several addresses is one
target: each new connection resolves it anew, and takes the first address that answers.

With \`resolve\`, each address of a name is a target of its own, for balance, health checks and ejection, such as each pod of a headless
Service. The system is asked, with its hosts file and search domains, every \`interval\`; \`resolve.servers\` are asked whenever the TTL is over,
but at least every \`interval\` and at most every second, and need the full name. What an address that is gone has in flight is finished. An answer without addresses, or none
at all, leaves the last known ones in use for \`staleFor\`; after that, requests get 502 (\`dns\`). Until the first answer they wait in the queue. The
name remains what the certificate must have, and what \`hostHeader: target\` sends. At most 256 addresses of a name are used.

\`<name>\` is 1 to 64 characters of \`a-z 0-9 _ -\`. Connections and the queue are counted per thread.
[Operations](../operations.md#when-a-backend-is-full) says which request is next, and which gets 503.`,
};

/** The end of the document. */
export const AFTER = `## The users file

Passwords are argon2id, bcrypt (\`$2a$\`, \`$2b$\`, \`$2y$\`, with a cost of 8 to 16) or scrypt (\`$scrypt$ln=…\`) hashes;
\`sallyport hash-password\` prints one. Sallyport refuses plain text, MD5 and SHA-1, with the line number. \`groups\` and \`disabled\` are optional.
Sallyport reads the file in a separate thread while traffic continues: 20,000 users take about 2 s of CPU and 300 MB of memory, 2,000
about 0.4 s and 55 MB. The maximum is 8 MiB.

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

## A larger configuration

\`\`\`yaml
# config.yaml
server:
  listen: "0.0.0.0:\${PORT:-8443}"
  tls: { certFile: tls.crt, keyFile: tls.key, minVersion: TLSv1.3 }
  trustedProxies: [10.0.0.0/8]
users:
  - { kind: file, path: users.yaml }
tokens:
  keys: keys
  trusted:
    - issuer: https://id.example.com
      audience: orders
      jwks: { url: "https://id.example.com/jwks.json" }
      algorithms: [RS256]
version: { upstream: orders, path: /version, field: version }
identity: { headers: { subject: X-User, groups: X-Groups, issuer: X-Issuer } }
routes:
  - { name: docs, path: /docs/, methods: [GET, HEAD], auth: none, upstream: docs }
  - name: orders
    path: /api/orders
    require: { groups: { any: [sales, admin] } }
    upstream: orders
    rewrite: { stripPrefix: /api }
upstreams:
  docs: { targets: ["unix:/run/docs.sock"] }
  orders:
    targets: ["http://127.0.0.1:8080", "http://127.0.0.1:8081"]
    timeouts: { response: 10s }
\`\`\`
`;

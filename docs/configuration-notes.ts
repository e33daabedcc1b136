/**
 * What `docs/configuration.md` says beyond the tables that are made of the schema: below the table of a section, and at the end.
 */

/** By section: a fact that belongs to several keys, or is too long for a cell. */
export const NOTES: Readonly<Record<string, string>> = {
  server: `The client of a trusted proxy is the last address of \`X-Forwarded-For\` that is in none of \`server.trustedProxies\`, with or without
port; nothing else names it. \`server.tls.clientCertificates.caFile\` holds the roots, too. What connections cost, and how many a container holds: [operations](operations.md#sizing).
What is agreed on in TLS, and which certificates are refused: [security model](security-model.md#tls).`,

  login: `After the failures of \`login.throttle.account\`, an address that the name has not logged in from in the last 30 days gets three tries;
one that it has, so many in a row. Of \`login.throttle.global\`, an address that has failed lately gets half to three quarters; names on
addresses that they have logged in from are not counted there and go on. In the queue for hashing they come first, too, and take
places of others; so do addresses with fewer waiting and failed. Who is throttled gets 429, who finds no place 503:
[troubleshooting](troubleshooting.md#the-login-is-throttled).`,

  tokens: `\`tokens.issuer\` is the \`realm\` of challenges, too. The directory of keys is read again when it changes:
[operations](operations.md#keys). A key set is fetched by \`https\`, or by \`http\` on the loopback, and never brings a shared secret.`,

  version: `Of \`version.text\`, \`.env\`, \`.file\` and \`.upstream\` one is given, or none. A version is \`<major>.<minor>.<patch>\`. What an upstream
says is believed for ten seconds.`,

  identity: `\`oauth2-proxy\` gives \`X-Forwarded-User\` and \`-Groups\`, \`kube-rbac-proxy\` gives \`X-Remote-User\` and \`-Groups\`; both do not tell the
issuer. What \`sallyport\` gives: [README](../README.md#towards-the-backend).`,

  routes: `The most specific route is taken: an exact host before \`*.example.com\` before any host, then the longest path, then a route that
names methods. \`sallyport check\` prints the order. Without \`routes\` everything goes to the only upstream, with a token. A route has
\`path\` or \`exact\`. Who would be refused under \`mode: monitor\` is counted as \`would_deny\`:
[how to go over](operations.md#put-it-in-front-of-a-running-backend). \`routes[].rateLimit\` counts in each thread of each replica, with
\`within\` in whole seconds; more get 429. By \`address\` (IPv6: one /64) it counts before the token is looked at.`,

  upstreams: `\`<name>\` is 1 to 64 of \`a-z 0-9 _ -\`. Connections and the queue are counted for each thread. Who is next, and who gets 503:
[operations](operations.md#when-a-backend-is-full).`,
};

/** The end of the document. */
export const AFTER = `## The users file

Passwords are argon2id, bcrypt (\`$2a$\`, \`$2b$\`, \`$2y$\`) or scrypt (\`$scrypt$ln=…\`) hashes; \`sallyport hash-password\` prints one. Plain
text, MD5 and SHA-1 are refused when the file is read, with the line. \`groups\` and \`disabled\` may be left out. A large file is read
beside the traffic, which goes on meanwhile: 20,000 users take some 2 s of CPU and 300 MB of memory, 2,000 some
0.4 s and 55 MB; 8 MiB are the most.

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

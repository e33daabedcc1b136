/** The subject of the users that log in, and the password of all of them. */
export const USER = "alice";
export const PASSWORD = "correct horse battery staple";
export const FOREIGN_ISSUER = "https://id.soak.example";
export const FOREIGN_AUDIENCE = "soak";

/** Where a valid request goes without a token, with one, and with one of the right group. */
export const PUBLIC = "/public";
export const OPEN = "/app";
export const GROUPED = "/sales";

/** A route for a group that nobody has. */
export const FORBIDDEN = "/closed";

/** The largest body of a request, in bytes. */
export const BODY_LIMIT = 4 * 1024 * 1024;

/** Threads that check passwords. */
export const HASHING_THREADS = 2;

/** The configuration as written to the file; time limits are short, so that silent backends are found within the run. */
export function configurationFor(targets: readonly string[], workers: number): object {
  const group = (name: string): object => ({ require: { groups: { any: [name] } } });
  return {
    server: {
      listen: "127.0.0.1:0",
      tls: { certFile: "tls.crt", keyFile: "tls.key" },
      workers,
      // Clients choose their address, so that those who guess passwords ban nobody but themselves.
      trustedProxies: ["127.0.0.1/32"],
      limits: { bodyBytes: `${BODY_LIMIT / 1024 / 1024}MiB` },
      drain: { delay: "0s", timeout: "5s" },
    },
    admin: { listen: "127.0.0.1:0" },
    login: { hashing: { concurrency: HASHING_THREADS, queue: 256 } },
    users: [{ kind: "file", path: "users/users.yaml" }],
    tokens: {
      keys: "keys",
      trusted: [
        {
          issuer: FOREIGN_ISSUER,
          audience: FOREIGN_AUDIENCE,
          jwks: { file: "trusted/jwks.json" },
          algorithms: ["ES256"],
        },
      ],
    },
    version: { text: "1.2.3" },
    routes: [
      { name: "public", path: `${PUBLIC}/`, auth: "none", upstream: "app" },
      { name: "open", path: OPEN, upstream: "app" },
      { name: "grouped", path: GROUPED, upstream: "app", ...group("sales") },
      { name: "closed", path: FORBIDDEN, upstream: "app", ...group("nobody") },
    ],
    upstreams: {
      app: {
        targets,
        connections: 512,
        timeouts: { connect: "3s", response: "3s", idle: "10s" },
        websocket: { handshake: "3s", idle: "10s" },
      },
    },
    log: { format: "json", level: "info" },
  };
}

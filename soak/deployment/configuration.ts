/** The user that logs in, with the password. */
export const USER = "alice";
export const PASSWORD = "correct horse battery staple";
export const FOREIGN_ISSUER = "https://id.soak.example";
export const FOREIGN_AUDIENCE = "soak";

/** Routes that need no token, a token, and a token with the right group. */
export const PUBLIC = "/public";
export const OPEN = "/app";
export const GROUPED = "/sales";

/** A route for a group that no one has. */
export const FORBIDDEN = "/closed";

/** The maximum body size of requests, in bytes. */
export const BODY_LIMIT = 4 * 1024 * 1024;

/** The number of threads that check passwords. */
export const HASHING_THREADS = 2;

/** Returns the configuration. Its time limits are short, so that silent backends are detected within the run. */
export function configurationFor(targets: readonly string[], workers: number): object {
  const group = (name: string): object => ({ require: { groups: { any: [name] } } });
  return {
    server: {
      listen: "127.0.0.1:0",
      tls: { certFile: "tls.crt", keyFile: "tls.key" },
      workers,
      // Clients choose their address, so that those that guess passwords ban only themselves.
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

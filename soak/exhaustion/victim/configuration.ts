import type { ShippedSettings } from "./shipped-settings.ts";

export const USER = { username: "alice", password: "correct horse battery staple" };
export const ISSUER = "https://id.exhaustion.example";
export const AUDIENCE = "exhaustion";

/** The admin page that a slow backend answers. */
export const PROBE = "/probes/app";

export interface ConfigurationOptions {
  readonly tls: boolean;
  readonly workers: number;
  readonly shipped: ShippedSettings;
  /** The ports of the backend that attacks use, and of one that they do not use. */
  readonly backendPorts: { readonly app: number; readonly calm: number };
}

/** Returns the settings of the shipped manifests, plus a public route, a trusted issuer and a slow probe for the attacks. */
export function configurationFor(options: ConfigurationOptions): object {
  const { tls, workers, shipped, backendPorts } = options;
  return {
    server: {
      listen: "127.0.0.1:0",
      tls: tls ? { certFile: "tls.crt", keyFile: "tls.key" } : "off",
      workers,
      limits: shipped.limits,
      drain: { delay: "0s", timeout: "1s" },
    },
    admin: {
      listen: "127.0.0.1:0",
      // All other addresses of the loopback are neighbours.
      allow: ["127.0.0.1/32"],
      probes: [{ path: PROBE, upstream: "app", target: "/slow?ms=9000" }],
    },
    login: shipped.login,
    users: [{ kind: "file", path: "users.yaml" }],
    tokens: {
      keys: "keys",
      trusted: [
        {
          issuer: ISSUER,
          audience: AUDIENCE,
          jwks: { file: "trusted.json" },
          algorithms: ["ES256"],
        },
      ],
    },
    routes: [
      { name: "public", path: "/public", auth: "none", upstream: "app" },
      { name: "app", path: "/app", upstream: "app" },
      { name: "calm", path: "/calm", upstream: "calm" },
    ],
    upstreams: {
      app: { targets: [`http://127.0.0.1:${backendPorts.app}`] },
      calm: { targets: [`http://127.0.0.1:${backendPorts.calm}`] },
    },
    log: { format: "json", level: "info" },
  };
}

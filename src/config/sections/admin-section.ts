import { CLIENTS_LISTEN } from "./server-section.ts";
import { z } from "zod";
import { flag, listen, network, oneOf, settings, text, urlPath } from "../fields.ts";
import {
  listAt,
  mappingAt,
  NO_UPSTREAM,
  type PathProblem,
  textAt,
  unknownName,
  type Written,
} from "../written.ts";

/** The section `admin`. */
export const admin = {
  schema: adminSection,
  rules: [listenerProblems, probeProblems],
  atStart: [{ key: "admin.listen" }, { key: "admin.allow" }],
};

const ADMIN_LISTEN = "0.0.0.0:9464";

const PROBE_TARGET = /^\/(?!\/)[!-~]*$/;

function probe() {
  return z.strictObject({
    path: urlPath("plain").describe("Exact path"),
    upstream: text().describe("Upstream, whose first target gets the probe"),
    target: z
      .string()
      .regex(PROBE_TARGET, "must be a path with an optional query, such as /health?full=1")
      .refine((target) => !target.includes("#"), "must have no fragment")
      .exactOptional()
      .describe("Path and query at the backend; default: the same path"),
  });
}

function adminSection() {
  const mapping = z.strictObject({
    listen: listen()
      .prefault(ADMIN_LISTEN)
      .describe("Address and port of /metrics, /livez, /readyz and /startupz"),
    allow: z
      .array(network())
      .default(["127.0.0.0/8", "::1"])
      .describe("Networks that may use the privileged pages under /-/"),
    ready: settings("Additional conditions for readiness", {
      upstreams: oneOf(["none", "any", "all"], "none").describe(
        "Upstreams that must accept connections for /readyz to be 200",
      ),
      users: flag(false).describe(
        "Whether remote user stores must be available for /readyz to be 200",
      ),
    }),
    probes: z
      .array(probe())
      .prefault([])
      .describe("Paths that the admin listener forwards to a backend, for the kubelet's probes"),
  });
  // YAML 1.1 (Helm, for one) turns an unquoted `off` into false.
  const off = z.literal(["off", false]).transform(() => "off" as const);
  return z
    .union([mapping, off], { error: "must be { listen: address } or off" })
    .prefault({})
    .describe("Metrics and health, over plain HTTP on a separate port; off: none");
}

/** Reports two listeners on one port: with SO_REUSEPORT, both would start and share the connections. */
function listenerProblems({ whole }: Written): PathProblem[] {
  const { admin } = whole;
  const [host, port] = hostAndPort(mappingAt(whole, "server")["listen"] ?? CLIENTS_LISTEN);
  const [adminHost, adminPort] =
    admin === "off" || admin === false
      ? ["", ""]
      : hostAndPort(mappingAt(admin)["listen"] ?? ADMIN_LISTEN);
  const everywhere = ["0.0.0.0", "[::]"];
  const shared = host === adminHost || everywhere.includes(host) || everywhere.includes(adminHost);
  if (port === "" || port === "0" || port !== adminPort || !shared) return [];
  return [{ path: ["admin", "listen"], message: "uses the port of server.listen: choose another" }];
}

function hostAndPort(listen: unknown): [string, string] {
  const [, host = "", port = ""] = /^(.*):(\d+)$/.exec(textAt(listen) ?? "") ?? [];
  return [host, port];
}

/** Paths that the admin listener answers itself. */
const OWN_PATHS = ["/metrics", "/livez", "/readyz", "/startupz"];

const OWN_PREFIXES = ["/-/", "/.well-known/"];

function probeProblems({ whole, upstreams }: Written): PathProblem[] {
  const seen = new Set<string>();
  return listAt(whole, "admin", "probes").flatMap((probe, index) => {
    const at = ["admin", "probes", index];
    const path = textAt(probe, "path") ?? "";
    const own = OWN_PATHS.includes(path) || OWN_PREFIXES.some((prefix) => path.startsWith(prefix));
    const again = path !== "" && seen.has(path);
    seen.add(path);
    return [
      ...(own ? [{ path: [...at, "path"], message: "is Sallyport's own" }] : []),
      ...(again
        ? [{ path: [...at, "path"], message: "is the path of another probe already" }]
        : []),
      ...unknownName(textAt(probe, "upstream"), upstreams, [...at, "upstream"], NO_UPSTREAM),
    ];
  });
}

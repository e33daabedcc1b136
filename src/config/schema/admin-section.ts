import { z } from "zod";
import { flag, listen, network, text } from "./fields.ts";
import { urlPath } from "./url-path.ts";

/** The section `admin`. */

const TARGET = /^\/(?!\/)[!-~]*$/;

function probe() {
  return z.strictObject({
    path: urlPath("plain").describe("Exact path on the admin listener"),
    upstream: text().describe("Name of the upstream; the probe goes to its first target"),
    target: z
      .string()
      .regex(TARGET, "must be a path with an optional query, such as /health?full=1")
      .refine((target) => !target.includes("#"), "must have no fragment")
      .exactOptional()
      .describe("Path and query at the backend; default: the same path"),
  });
}

export function adminSection() {
  const mapping = z.strictObject({
    listen: listen()
      .prefault("0.0.0.0:9464")
      .describe("Address and port of /metrics, /livez, /readyz and /startupz"),
    allow: z
      .array(network())
      .default(["127.0.0.0/8", "::1"])
      .describe("Networks allowed to call the privileged endpoints under /-/"),
    ready: z
      .strictObject({
        upstreams: z
          .enum(["none", "any", "all"])
          .default("none")
          .describe("Which upstreams must accept connections for /readyz to answer 200"),
        users: flag(false).describe(
          "Whether all user stores on other machines must be available for /readyz to answer 200",
        ),
      })
      .prefault({})
      .describe("Additional conditions for readiness"),
    probes: z
      .array(probe())
      .prefault([])
      .describe(
        "Paths on the admin listener that Sallyport forwards to a backend, for the kubelet's probes",
      ),
  });
  // YAML 1.1 (Helm, for one) turns an unquoted `off` into false.
  const off = z.literal(["off", false]).transform(() => "off" as const);
  return z
    .union([mapping, off], { error: "must be { listen: address } or off" })
    .prefault({})
    .describe("Metrics and health over plain HTTP on a separate port, or off");
}

import { z } from "zod";
import { listen, network, text, urlPath } from "./fields.ts";

/** The section `admin`. */

const TARGET = /^\/(?!\/)[!-~]*$/;

function probe() {
  return z.strictObject({
    path: urlPath().describe("The path on the admin listener: this one alone"),
    upstream: text().describe("Name of the upstream; of several targets the first is asked"),
    target: z
      .string()
      .regex(TARGET, "must be a path, and a query if need be, such as /health?full=1")
      .refine((target) => !target.includes("#"), "must have no fragment")
      .exactOptional()
      .describe("Path and query at the backend; the same path when left out"),
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
      .describe("Networks whose peers may use what changes or reveals something (/-/...)"),
    ready: z
      .strictObject({
        upstreams: z
          .enum(["none", "any", "all"])
          .default("none")
          .describe("Which upstreams must take connections for /readyz to say 200"),
      })
      .prefault({})
      .describe("What readiness depends on besides draining"),
    probes: z
      .array(probe())
      .default([])
      .describe("Paths of the admin listener that a backend answers, for the kubelet's probes"),
  });
  return z
    .union([mapping, z.literal("off")], { error: "must be { listen: address } or off" })
    .prefault({})
    .describe("Metrics and health over plain HTTP on a port of their own, or off");
}

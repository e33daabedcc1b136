import { z } from "zod";
import { flag, mapping, network } from "../fields.ts";
import {
  type Mapping,
  mappingAt,
  type PathProblem,
  type Section,
  valueAt,
  type Written,
} from "../written.ts";

/** What holds of the section `decisions`, besides its schema. */
export const decisions: Section = { rules: [protocolProblems] };

/** The section `decisions`: other proxies ask whether a request may pass, and forward it themselves. */
export function decisionsSection() {
  return mapping("Answers other proxies, such as nginx and Envoy, whether a request may pass", {
    from: z
      .array(network())
      .min(1)
      .describe("Networks of the proxies that may ask; their X-Forwarded-For names the client"),
    http: flag(true).describe("Whether {server.ownPath}/decide answers"),
    grpc: flag(false).describe(
      "Whether envoy.service.auth.v3.Authorization/Check answers; needs server.http2",
    ),
    only: flag(false).describe("Whether nothing is forwarded: routes need no upstream"),
  });
}

/** Whether an unvalidated configuration forwards nothing. */
export function decidesOnly(whole: Mapping): boolean {
  return valueAt(whole, ["decisions", "only"]) === true;
}

/** Somebody must be able to ask, and gRPC needs HTTP/2. */
function protocolProblems({ whole }: Written): PathProblem[] {
  const { http = true, grpc = false } = mappingAt(whole, "decisions");
  if (http === false && grpc === false) {
    const message = "answers nobody: http or grpc must be true";
    return [{ path: ["decisions"], of: "key", message }];
  }
  if (grpc !== true || valueAt(whole, ["server", "http2"]) === true) return [];
  const message = "must not be true without server.http2: true, which gRPC needs";
  return [{ path: ["decisions", "grpc"], message }];
}

import { z } from "zod";
import { flag, network } from "../fields.ts";
import { type Mapping, valueAt } from "../written.ts";

/** The section `decisions`: other proxies ask whether a request may pass, and forward it themselves. */
export function decisionsSection() {
  return z
    .strictObject({
      from: z
        .array(network())
        .min(1)
        .describe(
          "Networks of the proxies that may ask, by the address of their connection; their X-Forwarded-For names the client. 403 for others",
        ),
      http: flag(true).describe("Whether {server.ownPath}/decide answers over HTTP"),
      only: flag(false).describe(
        "Whether nothing is forwarded: routes need no upstream, and upstreams may be left out",
      ),
    })
    .describe(
      "Answers other proxies whether a request may pass: nginx auth_request, Traefik, Caddy, Envoy, HAProxy, the Gateway API. Default: none",
    );
}

/** Whether an unvalidated configuration forwards nothing. */
export function decidesOnly(whole: Mapping): boolean {
  return valueAt(whole, ["decisions", "only"]) === true;
}

import { z } from "zod";
import { flag, network } from "../fields.ts";

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
    })
    .describe(
      "Answers other proxies whether a request may pass: nginx auth_request, Traefik, Caddy, Envoy, HAProxy, the Gateway API. Default: none",
    );
}

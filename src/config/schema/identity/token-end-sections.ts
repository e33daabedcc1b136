import { REVOCATION_KEYS } from "../../../core/revocation.ts";
import { z } from "zod";
import { absolute, duration, filePath, text } from "../fields.ts";

/** The parts of `tokens` about revocation, and about what happens to open connections when a token ends. */

export function revocationSection() {
  return z
    .strictObject({
      file: filePath({ readAgainBy: "reader" })
        .exactOptional()
        .describe(`File that lists what is revoked: ${REVOCATION_KEYS.join(", ")}`),
      journal: text()
        .transform(absolute)
        .exactOptional()
        .describe(
          "File that keeps logouts and other revocations across restarts; its directory must be writable",
        ),
      logout: z
        .boolean()
        .default(false)
        .describe("Whether POST /api/logout revokes the token that it carries"),
      users: z
        .boolean()
        .default(true)
        .describe(
          "Whether removing or disabling a user revokes the tokens that Sallyport issued to that user",
        ),
    })
    .prefault({})
    .describe("Revocation of tokens before their exp");
}

export function streamsSection() {
  return z
    .strictObject({
      endWithToken: z
        .boolean()
        .default(true)
        .describe(
          "Whether they end with their token: WebSockets, downloads, uploads, event streams",
        ),
      grace: duration({ min: 0, max: 3_600_000 })
        .prefault("0s")
        .describe("How long they may continue after exp; never after a revocation"),
    })
    .prefault({})
    .describe("What happens to open requests and WebSockets when their token ends");
}

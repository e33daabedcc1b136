import { z } from "zod";
import { absolute, duration, filePath, text } from "../fields.ts";

/** The parts of `tokens` about the end of a token before its time, and of what it has opened. */

export function revocationSection() {
  return z
    .strictObject({
      file: filePath({ readAgainBy: "reader" })
        .exactOptional()
        .describe("File with what is revoked: jti, subjects, before"),
      journal: text()
        .transform(absolute)
        .exactOptional()
        .describe(
          "File that keeps logouts and other revocations for the next start; its directory must be writable",
        ),
      logout: z
        .boolean()
        .default(false)
        .describe("Whether POST /api/logout ends the token that it is sent with"),
      users: z
        .boolean()
        .default(true)
        .describe("Whether a user who is removed or disabled loses the tokens issued here"),
    })
    .prefault({})
    .describe("Tokens that end before their time");
}

export function streamsSection() {
  return z
    .strictObject({
      endWithToken: z
        .boolean()
        .default(true)
        .describe("Whether what runs ends with its token: WebSockets, downloads, uploads, events"),
      grace: duration({ min: 0, max: 3_600_000 })
        .prefault("0s")
        .describe("How long it may go on behind exp; not when the token is revoked"),
    })
    .prefault({})
    .describe("What a token has opened and is still running when it ends");
}

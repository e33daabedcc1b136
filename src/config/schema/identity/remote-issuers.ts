import { z } from "zod";
import type { TokenCheckName } from "../../../tokens/remote/token-check-kinds.ts";
import { text } from "../fields.ts";
import { apiServer, remoteAccess, remoteTimes, remoteUrl } from "../remote-fields.ts";

/** The fields of issuers in `tokens.trusted` whose tokens another server verifies. */

/** The settings of each kind of server, by the key of an issuer. */
export function tokenChecks() {
  return {
    introspection: introspection(),
    tokenReview: tokenReview(),
  } satisfies Record<TokenCheckName, z.ZodType>;
}

/** The other keys of an issuer that fit each kind. */
export const FITTING: Readonly<Record<TokenCheckName, readonly ("audience" | "claims")[]>> = {
  introspection: ["audience", "claims"],
  // The API server decides about audiences and names.
  tokenReview: [],
};

function introspection() {
  const { caFile } = remoteAccess();
  return z
    .strictObject({
      url: remoteUrl().describe("URL of the introspection endpoint"),
      clientId: text().describe("Client id of Sallyport"),
      clientSecret: text().describe("Client secret; use ${file:…}"),
      caFile,
      ...remoteTimes({ timeout: "2s", cache: "30s" }),
    })
    .exactOptional()
    .describe("Token introspection (RFC 7662), for tokens that are not JWTs");
}

function tokenReview() {
  return z
    .strictObject({
      apiServer: apiServer(),
      ...remoteAccess(),
      audiences: z
        .array(text())
        .default([])
        .describe(
          "Audiences, of which a token must have one; default: that of the API server itself",
        ),
      ...remoteTimes({ timeout: "2s", cache: "1m" }),
    })
    .exactOptional()
    .describe("Kubernetes TokenReview, for every token that no other entry covers");
}

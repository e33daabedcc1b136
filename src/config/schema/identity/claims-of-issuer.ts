import { z } from "zod";
import { claimName, duration, text } from "../fields.ts";

/** The fields of an issuer in `tokens.trusted` about the claims of its tokens. */

const TEN_YEARS = 3660 * 24 * 3_600_000;

export function audience() {
  return z
    .union([text(), z.array(text()).min(1)], { error: "must be a text or a list of texts" })
    .describe("Expected aud of its tokens: one value, or a list of which one must match");
}

export function claimsOfIssuer() {
  return {
    claims: z
      .strictObject({
        subject: claimName().exactOptional().describe("Claim with the caller's name; default: sub"),
        groups: claimName()
          .exactOptional()
          .describe("Claim with the caller's groups, a list or a string; default: groups"),
      })
      .exactOptional()
      .describe("Claims to use instead of sub and groups"),
    types: z
      .array(text())
      .min(1)
      .exactOptional()
      .describe("Accepted typ, such as at+jwt; default: JWT, at+jwt, or none"),
    maxLifetime: duration({ min: 1_000, max: TEN_YEARS })
      .exactOptional()
      .describe("Longest time from iat to exp; tokens without iat are then refused"),
  };
}

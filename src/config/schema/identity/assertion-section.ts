import { z } from "zod";
import { ASSERTION_HEADER, isOwnRequestHeader } from "../../../upstream/headers/header-names.ts";
import { ASYMMETRIC_ALGORITHMS } from "../../../tokens/keys/algorithms.ts";
import { claimName, filePath, headerName, text, wholeSeconds } from "../fields.ts";

/** The claims that an assertion sets itself, and those that would change how it is interpreted. */
const OWN = ["iss", "aud", "sub", "idp", "iat", "exp", "nbf", "jti", "cnf"];
const ONE_HOUR = 3_600_000;

/** The part of `tokens` about assertions for backends. */
export function assertionSection() {
  return z
    .strictObject({
      issuer: text().exactOptional().describe("Its iss; default: tokens.issuer"),
      audience: text().describe("Its aud, which must differ from that of tokens"),
      keys: filePath({ kind: "directory", readAgainBy: "reader" })
        .exactOptional()
        .describe(
          "Directory of PEM or JWK files with its own keys; default: the keys in tokens.keys, or else a separate key generated at start",
        ),
      algorithm: z
        .enum(ASYMMETRIC_ALGORITHMS)
        .exactOptional()
        .describe("Its signature algorithm; default: tokens.algorithm"),
      lifetime: wholeSeconds({ min: 5_000, max: ONE_HOUR })
        .prefault("60s")
        .describe("Time from iat to exp; exp is never later than that of the caller's token"),
      header: headerName()
        .refine(
          (name) => name === ASSERTION_HEADER || !isOwnRequestHeader(name),
          "must not be a header that frames the message, is hop-by-hop, or belongs to Sallyport",
        )
        .default(ASSERTION_HEADER)
        .describe("The header that carries it; Sallyport removes this header from client requests"),
      claims: z
        .array(
          claimName().refine(
            (name) => !OWN.includes(name),
            "must not be a claim that the assertion sets itself",
          ),
        )
        .default(["groups"])
        .describe("Claims copied from the caller's token, besides iss, aud, sub, idp, iat and exp"),
    })
    .exactOptional()
    .describe("A short-lived JWT for backends, on routes with assertion: true");
}

/** The key of a route. */
export function routeAssertion() {
  return z
    .boolean()
    .exactOptional()
    .describe("Whether the backend gets a signed assertion about the caller: tokens.assertion");
}

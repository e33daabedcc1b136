import type { Identity } from "./identity.ts";

/** Why a token was not accepted. For the log and the metrics; the client is never told. */
export const TOKEN_REFUSALS = [
  "malformed",
  "too_large",
  "algorithm",
  "unknown_key",
  "signature",
  "expired",
  "not_yet_valid",
  "issuer",
  "audience",
  "no_expiry",
  "revoked",
] as const;
export type TokenRefusal = (typeof TOKEN_REFUSALS)[number];

/** Reads bearer tokens. A refusal is an ordinary result; `GateError("keys_unusable")` is thrown when it could not tell. */
export interface TokenVerifier {
  /**
   * @param token the compact serialisation, without the scheme.
   * @param connection stands for the connection that it came on, where there is one: it mostly sends the same token again.
   * @returns the caller at once when the token was verified before, else a promise of the caller or of the refusal.
   */
  verify(
    token: string,
    connection?: object,
  ): Identity | TokenRefusal | Promise<Identity | TokenRefusal>;
}

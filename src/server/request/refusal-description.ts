import type { TokenRefusal } from "../../core/request/token-verifier.ts";

/**
 * Why a token was refused, for clients: `error_description` (RFC 6750 §3). Reveals nothing about the token or the
 * configuration.
 */
const DESCRIPTIONS: Readonly<Record<TokenRefusal["reason"], string | undefined>> = {
  malformed: "The token is malformed",
  too_large: "The token is too large",
  algorithm: "The signature algorithm is not accepted",
  unknown_key: "The key that signed the token is not known",
  signature: "The signature is not valid",
  expired: "The token has expired",
  not_yet_valid: "The token is not valid yet",
  issuer: "The issuer is not accepted",
  audience: "The token is for another audience",
  no_expiry: "The token has no expiration time",
  lifetime: "The lifetime of the token is too long",
  type: "The type of the token is not accepted",
  revoked: "The token was revoked",
  inactive: "The token is not active",
  multiple: "There is more than one token",
  // A request without a token gets a challenge without an error; if the token cannot be verified, the response is 503.
  missing: undefined,
  keys_unusable: undefined,
};

export function refusalDescription({ reason }: TokenRefusal): string | undefined {
  return DESCRIPTIONS[reason];
}

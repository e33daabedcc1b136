import type { ErrorCode, GateError } from "../../core/request/errors.ts";
import { type AuthReason, isAuthReason } from "../../core/request/outcome.ts";

/** Errors that refuse the caller. */
const DENIALS: ReadonlySet<string> = new Set([
  ...([
    "unauthenticated",
    "invalid_token",
    "forbidden",
    "network_denied",
    "cross_site",
  ] satisfies ErrorCode[]),
]);

/** The reason to count if an error refuses the caller; undefined for any other error. */
export function denialOf({ code, reason }: GateError): AuthReason | undefined {
  return DENIALS.has(code) && isAuthReason(reason) ? reason : undefined;
}

/** The reason to count if the caller cannot be verified at the moment; undefined for any other error. */
export function undecidedOf({ code }: GateError): AuthReason | undefined {
  return code === "keys_unusable" || code === "authorization_unavailable" ? code : undefined;
}

import type { IdentityClaims } from "../../core/request/identity.ts";
import type { Revocation } from "../../core/revocation.ts";

/** The longest that a token is known to live, in milliseconds: what `tokens.lifetime` takes at most. */
const LONGEST_LIFE_MS = 366 * 24 * 3_600_000;

/** When the last token that was issued before a time has ended by itself, in milliseconds since the epoch. */
export function longestEnd(beforeMs: number, nowMs: number): number {
  return Math.max(beforeMs, nowMs) + LONGEST_LIFE_MS;
}

/** The tokens of a subject that were issued until now; `iat` counts whole seconds, so this second is one of them. */
export function subjectUntilNow(
  subject: string,
  issuer: string | undefined,
  nowMs: number,
): Revocation {
  const before = (Math.floor(nowMs / 1000) + 1) * 1000;
  const until = longestEnd(before, nowMs);
  return {
    kind: "subject",
    name: subject,
    ...(issuer === undefined ? {} : { issuer }),
    before,
    until,
  };
}

/**
 * Ends the token of a caller; where it has no `jti`, or there is no room for single tokens, all of its subject until now.
 */
export function tokenOf(caller: IdentityClaims, full: boolean, nowMs: number): Revocation {
  const { tokenId, subject, issuer, acceptedUntil } = caller;
  if (tokenId === undefined || full) return subjectUntilNow(subject, issuer, nowMs);
  return { kind: "token", name: tokenId, until: acceptedUntil };
}

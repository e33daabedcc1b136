import type { IdentityClaims } from "../../core/request/identity.ts";
import {
  type Revocation,
  REVOCATION_FORMS,
  type RevocationKindName,
} from "../../core/revocation.ts";

/** Assumed maximum lifetime of a token, in milliseconds: the largest value of `tokens.lifetime`. */
const LONGEST_LIFE_MS = 366 * 24 * 3_600_000;

/** Returns when the last token issued before a time has expired, in milliseconds since the epoch. */
export function longestEnd(beforeMs: number, nowMs: number): number {
  return Math.max(beforeMs, nowMs) + LONGEST_LIFE_MS;
}

/** The limits of a revocation of a dated kind; times in milliseconds since the epoch. */
interface Dates {
  /** The issuer of the tokens; undefined for every issuer. */
  readonly issuer?: string | undefined;
  /** Revokes tokens issued before this time; undefined for all issued until now. */
  readonly before?: number | undefined;
  readonly nowMs: number;
}

/** Returns the revocation of a name. Its tokens are unknown, so the revocation lasts as long as a token can live. */
export function revocationNaming(
  kind: RevocationKindName,
  name: string,
  { issuer, before, nowMs }: Dates,
): Revocation {
  if (!REVOCATION_FORMS[kind].dated) return { kind, name, until: longestEnd(nowMs, nowMs) };
  // `iat` counts whole seconds, so the current second is included.
  const beforeMs = before ?? (Math.floor(nowMs / 1000) + 1) * 1000;
  const whose = issuer === undefined ? {} : { issuer };
  return { kind, name, ...whose, before: beforeMs, until: longestEnd(beforeMs, nowMs) };
}

/** Revokes the tokens of a subject that were issued until now. */
export function subjectUntilNow(
  subject: string,
  issuer: string | undefined,
  nowMs: number,
): Revocation {
  return revocationNaming("subject", subject, { issuer, nowMs });
}

/**
 * Revokes the token of a caller. If it has no `jti`, or there is no room for single tokens, revokes all tokens issued
 * to its subject until now.
 */
export function tokenOf(caller: IdentityClaims, full: boolean, nowMs: number): Revocation {
  const { tokenId, subject, issuer, acceptedUntil } = caller;
  if (tokenId === undefined || full) return subjectUntilNow(subject, issuer, nowMs);
  return { kind: "token", name: tokenId, until: acceptedUntil };
}

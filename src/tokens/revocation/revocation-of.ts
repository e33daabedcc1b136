import type { IdentityClaims } from "../../core/request/identity.ts";
import {
  type Revocation,
  REVOCATION_FORMS,
  type RevocationKindName,
} from "../../core/revocation.ts";

/** The longest that a token is known to live, in milliseconds: what `tokens.lifetime` takes at most. */
const LONGEST_LIFE_MS = 366 * 24 * 3_600_000;

/** When the last token that was issued before a time has ended by itself, in milliseconds since the epoch. */
export function longestEnd(beforeMs: number, nowMs: number): number {
  return Math.max(beforeMs, nowMs) + LONGEST_LIFE_MS;
}

/** What limits a revocation of a dated kind; times in milliseconds since the epoch. */
interface Dates {
  /** Whose tokens; undefined for those of every issuer. */
  readonly issuer?: string | undefined;
  /** Undefined for the tokens that were issued until now. */
  readonly before?: number | undefined;
  readonly nowMs: number;
}

/** Ends the tokens of one name, which are not known: they can live as long as tokens may. */
export function revocationNaming(
  kind: RevocationKindName,
  name: string,
  { issuer, before, nowMs }: Dates,
): Revocation {
  if (!REVOCATION_FORMS[kind].dated) return { kind, name, until: longestEnd(nowMs, nowMs) };
  // `iat` counts whole seconds, so this second is one of them.
  const beforeMs = before ?? (Math.floor(nowMs / 1000) + 1) * 1000;
  const whose = issuer === undefined ? {} : { issuer };
  return { kind, name, ...whose, before: beforeMs, until: longestEnd(beforeMs, nowMs) };
}

/** The tokens of a subject that were issued until now. */
export function subjectUntilNow(
  subject: string,
  issuer: string | undefined,
  nowMs: number,
): Revocation {
  return revocationNaming("subject", subject, { issuer, nowMs });
}

/**
 * Revokes the token of a caller. If it has no `jti`, or there is no room for single tokens, revokes all tokens of
 * its subject until now.
 */
export function tokenOf(caller: IdentityClaims, full: boolean, nowMs: number): Revocation {
  const { tokenId, subject, issuer, acceptedUntil } = caller;
  if (tokenId === undefined || full) return subjectUntilNow(subject, issuer, nowMs);
  return { kind: "token", name: tokenId, until: acceptedUntil };
}

import type { IdentityClaims } from "../core/identity.ts";
import type { TokenRefusal } from "../core/token-verifier.ts";

/** What the tokens of one issuer must say. */
export interface Expectations {
  readonly audience: string;
  /** How far the issuer's clock may be off when a token begins and ends, in milliseconds. */
  readonly skewMs: number;
  /** How far in the future `iat` may lie, in milliseconds. */
  readonly issuedAheadMs: number;
}

const LONGEST_SUBJECT = 255;
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Checks the claims (RFC 7519 §4.1) at a time in milliseconds since the epoch. `iss` has been looked at before. */
export function readClaims(
  payload: Record<string, unknown>,
  issuer: string,
  { audience, skewMs, issuedAheadMs }: Expectations,
  nowMs: number,
): IdentityClaims | TokenRefusal {
  const { aud, exp, nbf, iat, sub, groups = [] } = payload;
  if (typeof sub !== "string" || !isName(sub) || sub.length > LONGEST_SUBJECT) return "malformed";
  if (!isTexts(groups) || !groups.every(isName)) return "malformed";
  if (nbf !== undefined && !isDate(nbf)) return "malformed";
  if (iat !== undefined && !isDate(iat)) return "malformed";
  if (exp !== undefined && !isDate(exp)) return "malformed";
  if (aud !== audience && !(isTexts(aud) && aud.includes(audience))) return "audience";
  if (exp === undefined) return "no_expiry";
  const until = acceptedUntil(exp, skewMs);
  if (nowMs >= until) return "expired";
  if (nbf !== undefined && nbf * 1000 > nowMs + skewMs) return "not_yet_valid";
  if (iat !== undefined && iat * 1000 > nowMs + issuedAheadMs) return "not_yet_valid";
  return { subject: sub, groups, issuer, expiresAt: exp, acceptedUntil: until };
}

/** When a token ends, in milliseconds since the epoch: at that instant it is no longer accepted. */
export function acceptedUntil(exp: number, skewMs: number): number {
  return exp * 1000 + skewMs;
}

/** A NumericDate (RFC 7519 §2). JSON lets `1e400` through, which is infinite and would never end. */
function isDate(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
}

/** Names travel on in headers and log lines. */
function isName(text: string): boolean {
  return text !== "" && text.isWellFormed() && !CONTROL.test(text);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

import type { IdentityClaims } from "../../core/request/identity.ts";
import type { Expectations, TokenRefusalReason } from "../../core/request/token-verifier.ts";

const LONGEST_SUBJECT = 255;
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const CONTROL = /[\u0000-\u001f\u007f]/;

/** Checks the claims (RFC 7519 §4.1) at a time in milliseconds since the epoch. `iss` has been looked at before. */
export function readClaims(
  payload: Record<string, unknown>,
  issuer: string,
  { audience, skewMs, issuedAheadMs }: Expectations,
  nowMs: number,
): IdentityClaims | TokenRefusalReason {
  const { aud, exp, nbf, iat, jti, sub, groups = [] } = payload;
  if (typeof sub !== "string" || !isName(sub) || sub.length > LONGEST_SUBJECT) return "malformed";
  if (!isTexts(groups) || !groups.every(isName)) return "malformed";
  if (nbf !== undefined && !isDate(nbf)) return "malformed";
  if (iat !== undefined && !isDate(iat)) return "malformed";
  if (exp !== undefined && !isDate(exp)) return "malformed";
  if (aud !== audience && !(isTexts(aud) && aud.includes(audience))) return "audience";
  if (exp === undefined) return "no_expiry";
  const acceptedUntil = exp * 1000 + skewMs;
  if (nowMs >= acceptedUntil) return "expired";
  if (nbf !== undefined && nbf * 1000 > nowMs + skewMs) return "not_yet_valid";
  if (iat !== undefined && iat * 1000 > nowMs + issuedAheadMs) return "not_yet_valid";
  const tokenId = typeof jti === "string" ? jti : undefined;
  return { subject: sub, groups, issuer, expiresAt: exp, acceptedUntil, tokenId, issuedAt: iat };
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

const WANTED = {
  sub: "must be 1 to 255 characters without control characters",
  groups: "must be a list of names without control characters",
  nbf: "must be a number of seconds",
  iat: "must be a number of seconds",
  exp: "must be a number of seconds",
} as const;

/** The claims that have a form which is never accepted, each with what it must be. */
export function claimFaults(claims: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(WANTED).flatMap(([name, wanted]) => {
    // Each by itself among others that are good; a claim that is not there is judged as missing.
    const alone = { sub: "a", aud: "a", exp: Number.MAX_SAFE_INTEGER, [name]: claims[name] };
    const read = readClaims(alone, "", { audience: "a", skewMs: 0, issuedAheadMs: 0 }, 0);
    return read === "malformed" ? [`"${name}" ${wanted}`] : [];
  });
}

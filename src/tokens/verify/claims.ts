import type { Confirmation } from "../../core/request/bound-token.ts";
import type { ClaimScalar, ClaimValue, IdentityClaims } from "../../core/request/identity.ts";
import { isJsonObject } from "../../lib/text/strict-json.ts";
import type {
  ClaimMapping,
  Expectations,
  NeededClaims,
  TokenRefusalReason,
} from "../../core/request/token-verifier.ts";

const LONGEST_SUBJECT = 255;
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const CONTROL = /[\u0000-\u001f\u007f]/;

/**
 * Checks the claims (RFC 7519 §4.1) at a time in milliseconds since the epoch. The caller has already checked `iss`.
 * @param needed claims to keep in addition to those that every identity has.
 */
export function readClaims(
  payload: Readonly<Record<string, unknown>>,
  issuer: string,
  expected: Expectations,
  nowMs: number,
  needed: NeededClaims = NO_CLAIMS,
): IdentityClaims | TokenRefusalReason {
  const { aud, exp, nbf, iat, jti, cnf } = payload;
  const { audiences, skewMs, issuedAheadMs, maxLifetimeMs, proof = "refuse" } = expected;
  const caller = callerOf(payload, expected.mapping);
  if (caller === undefined) return "malformed";
  if (nbf !== undefined && !isDate(nbf)) return "malformed";
  if (iat !== undefined && !isDate(iat)) return "malformed";
  if (exp !== undefined && !isDate(exp)) return "malformed";
  const bound = confirmationIn(cnf);
  // A client must also prove that it has the key (RFC 7800, RFC 8705, RFC 9449).
  if (cnf !== undefined && (bound === undefined || proof === "refuse")) return "sender_constrained";
  if (bound === undefined && proof === "require") return "unbound";
  if (audiences !== "any" && !audiences.some((one) => isFor(aud, one))) return "audience";
  if (exp === undefined) return "no_expiry";
  const acceptedUntil = exp * 1000 + skewMs;
  if (nowMs >= acceptedUntil) return "expired";
  if (nbf !== undefined && nbf * 1000 > nowMs + skewMs) return "not_yet_valid";
  if (iat !== undefined && iat * 1000 > nowMs + issuedAheadMs) return "not_yet_valid";
  if (maxLifetimeMs !== undefined && !(iat !== undefined && (exp - iat) * 1000 <= maxLifetimeMs)) {
    return "lifetime";
  }
  const tokenId = typeof jti === "string" ? jti : undefined;
  return {
    ...caller,
    issuer,
    expiresAt: exp,
    acceptedUntil,
    tokenId,
    issuedAt: iat,
    scopes: needed.scopes ? scopesOf(payload) : undefined,
    claims: keptClaims(payload, needed.names),
    bound,
  };
}

/** The SHA-256 of something in base64url. */
const DIGEST = /^[\w-]{43}$/;

/** Returns what `cnf` binds a token to; undefined if there is nothing, or anything that is not checked here. */
export function confirmationIn(cnf: unknown): Confirmation | undefined {
  if (!isJsonObject(cnf)) return undefined;
  const { jkt, "x5t#S256": x5t, ...others } = cnf;
  const isEmpty = jkt === undefined && x5t === undefined;
  if (isEmpty || Object.keys(others).length > 0) return undefined;
  return isDigest(jkt) && isDigest(x5t) ? { jkt, x5t } : undefined;
}

function isDigest(value: unknown): value is string | undefined {
  return value === undefined || (typeof value === "string" && DIGEST.test(value));
}

const NO_CLAIMS: NeededClaims = { scopes: false, names: [] };

/** Returns who somebody is, with the claims that are needed; undefined if a name is not well formed. */
export function personIn(
  payload: Readonly<Record<string, unknown>>,
  mapping: ClaimMapping | undefined,
  needed: readonly string[],
): Pick<IdentityClaims, "subject" | "groups" | "claims"> | undefined {
  const caller = callerOf(payload, mapping);
  return caller && { ...caller, claims: keptClaims(payload, needed) };
}

/** Returns who the caller is; undefined if a name is not well formed. */
function callerOf(
  payload: Readonly<Record<string, unknown>>,
  { subject: subjectClaim = "sub", groups: groupsClaim = "groups" }: ClaimMapping = {},
): Pick<IdentityClaims, "subject" | "groups"> | undefined {
  const subject = claimAt(payload, subjectClaim);
  if (typeof subject !== "string" || !isName(subject) || subject.length > LONGEST_SUBJECT) {
    return undefined;
  }
  const written = claimAt(payload, groupsClaim);
  if (written === undefined) return { subject, groups: [] };
  // A single group may be a string, but not in the standard claim `groups`, which is a list.
  const groups = typeof written === "string" && groupsClaim !== "groups" ? [written] : written;
  return isTexts(groups) && groups.every(isName) ? { subject, groups } : undefined;
}

/** Reports whether a token is for an audience. */
export function isFor(aud: unknown, audience: string): boolean {
  return aud === audience || (isTexts(aud) && aud.includes(audience));
}

/** Returns the claims of these names; undefined if there are none, since a map takes memory for each cached token. */
function keptClaims(
  payload: Readonly<Record<string, unknown>>,
  names: readonly string[],
): ReadonlyMap<string, ClaimValue> | undefined {
  const kept = new Map<string, ClaimValue>();
  for (const name of names) {
    const value = keptValue(claimAt(payload, name));
    if (value !== undefined) kept.set(name, value);
  }
  return kept.size === 0 ? undefined : kept;
}

/** A NumericDate (RFC 7519 §2). `1e400` is valid JSON, but parses as Infinity and would never expire. */
export function isDate(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
}

/** Names are passed on in headers and log lines. */
function isName(text: string): boolean {
  return text !== "" && text.isWellFormed() && !CONTROL.test(text);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** Returns a message for each claim whose form is never accepted, which says what it must be. */
export function claimFaults(
  claims: Readonly<Record<string, unknown>>,
  mapping: ClaimMapping = {},
): string[] {
  const { subject = "sub", groups = "groups" } = mapping;
  const wanted = [
    [subject, "must be 1 to 255 characters without control characters"],
    [groups, "must be a list of names without control characters"],
    ...["nbf", "iat", "exp"].map((name) => [name, "must be a number of seconds"] as const),
  ] as const;
  const anything: Expectations = { audiences: "any", skewMs: 0, issuedAheadMs: 0, mapping };
  return wanted.flatMap(([name, form]) => {
    // Tests each claim with valid values for the others. An absent claim counts as missing, not as malformed.
    const good = { [subject]: "a", exp: Number.MAX_SAFE_INTEGER };
    const alone = { ...good, [name]: claimAt(claims, name) };
    return readClaims(alone, "", anything, 0) === "malformed" ? [`"${name}" ${form}`] : [];
  });
}

/**
 * Finds a claim by its configured name. First looks for a claim of exactly that name, which may contain dots
 * (`https://example.com/roles`). If there is none, splits the name at the last dot before which it names an existing
 * claim, and looks for the rest inside that object (`realm_access.roles`). Only own members count, never those that
 * every object inherits.
 */
export function claimAt(claims: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  for (let dot = name.lastIndexOf("."); dot > 0; dot = name.lastIndexOf(".", dot - 1)) {
    const outer = name.slice(0, dot);
    if (!Object.hasOwn(claims, outer)) continue;
    const inner = claims[outer];
    return isJsonObject(inner) ? claimAt(inner, name.slice(dot + 1)) : undefined;
  }
  return undefined;
}

/** Returns the comparable part of a claim: a scalar, or the scalars in a list; undefined for an object or null. */
function keptValue(value: unknown): ClaimValue | undefined {
  if (isScalar(value)) return value;
  return Array.isArray(value) ? value.filter(isScalar) : undefined;
}

function isScalar(value: unknown): value is ClaimScalar {
  switch (typeof value) {
    case "string":
      // Half a surrogate pair (RFC 8259 §8.2) has no UTF-8: in headers and logs, different ones would look alike.
      return value.isWellFormed();
    case "boolean":
      return true;
    case "number":
      // `1e400` is valid JSON and parses as Infinity.
      return Number.isFinite(value);
    default:
      return false;
  }
}

/** Returns the scopes of a token from `scope`, else `scp`: a space-separated string (RFC 8693 §4.2) or a list. */
function scopesOf(claims: Readonly<Record<string, unknown>>): readonly string[] {
  const written = Object.hasOwn(claims, "scope") ? claims["scope"] : claimAt(claims, "scp");
  if (typeof written === "string") return written.split(" ").filter((scope) => scope !== "");
  return Array.isArray(written) ? written.filter((scope) => typeof scope === "string") : [];
}

import type { ClaimScalar, ClaimValue } from "../../core/request/identity.ts";

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
    return isObject(inner) ? claimAt(inner, name.slice(dot + 1)) : undefined;
  }
  return undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the comparable part of a claim: a scalar, or the scalars in a list; undefined for an object or null. */
export function keptValue(value: unknown): ClaimValue | undefined {
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
export function scopesOf(claims: Readonly<Record<string, unknown>>): readonly string[] {
  const written = Object.hasOwn(claims, "scope") ? claims["scope"] : claimAt(claims, "scp");
  if (typeof written === "string") return written.split(" ").filter((scope) => scope !== "");
  return Array.isArray(written) ? written.filter((scope) => typeof scope === "string") : [];
}

import { type CanonicalPath, decodeOnce, withoutEscapes } from "./percent-encoding.ts";

/**
 * Reduces every path to one spelling, so that the backend receives what was authorized.
 *
 * Decodes percent-encoded unreserved characters and puts the hex digits of all other encodings in upper case; both
 * are equivalences of RFC 3986 §6.2.2. Refuses, rather than repairs, everything that two readers could interpret
 * differently: dot segments, empty segments, backslashes, semicolons (servlet containers cut off path parameters),
 * encoded delimiters (`%2F %5C %3B %3F %23`), encoded control characters, double encoding, octets that are not UTF-8,
 * and spaces at the end or around dots. (The WHATWG URL parser drops spaces at the end of a decoded path. Windows drops
 * both.)
 */

/** Segments of unreserved characters, sub-delimiters except `;`, `:` and `@`. Dot segments are checked separately. */
const PLAIN = /^(?:\/[A-Za-z0-9\-._~!$&'()*+,=:@]+)*\/?$/;
const DOT_SEGMENT = /\/\.{1,2}(?:\/|$)/;
/** A segment that becomes a dot segment without the spaces around it, or a space at the end. */
const AMBIGUOUS_SPACE = /%20$|\/(?:%20)*\.{1,2}(?:%20)*(?:\/|$)/;
const DELIMITERS: ReadonlySet<string> = new Set(["/", "\\", ";", "?", "#"]);

/**
 * Returns the canonical form of a path, or undefined if the path is ambiguous.
 *
 * @param raw the path of a request target in origin form, without the query.
 */
export function canonicalPath(raw: string): CanonicalPath | undefined {
  if (PLAIN.test(raw) && raw !== "") {
    return DOT_SEGMENT.test(raw) ? undefined : { path: raw, matchPath: raw };
  }
  return raw.includes("%") ? decoded(raw) : undefined;
}

function decoded(raw: string): CanonicalPath | undefined {
  const decoding = decodeOnce(raw, DELIMITERS);
  if (decoding === undefined || AMBIGUOUS_SPACE.test(decoding.path)) return undefined;
  return PLAIN.test(withoutEscapes(decoding.path)) ? decoding : undefined;
}

/**
 * Reduces every path to one spelling, so that the backend receives what was authorized.
 *
 * Decodes percent-encoded unreserved characters and puts the hex digits of all other encodings in upper case; both
 * are equivalences of RFC 3986 §6.2.2. Refuses, rather than repairs, whatever two readers could interpret
 * differently: dot segments, empty segments, backslashes, semicolons (servlet containers cut off path parameters),
 * encoded delimiters (`%2F %5C %3B %3F %23`), encoded control characters, double encoding, octets that are not
 * UTF-8, and spaces at the end or around dots: the WHATWG URL parser drops the former after decoding, Windows both.
 */

/** A canonical path in its two forms. */
export interface CanonicalPath {
  /** The path to forward. */
  readonly path: string;
  /** `path` with the encodings of allowed characters decoded (`%40` → `@`), to match routes against. */
  readonly matchPath: string;
}

/** Segments of unreserved characters, sub-delimiters except `;`, `:` and `@`. Dot segments are checked separately. */
const PLAIN = /^(?:\/[A-Za-z0-9\-._~!$&'()*+,=:@]+)*\/?$/;
const DOT_SEGMENT = /\/\.{1,2}(?:\/|$)/;
/** A dot segment once the spaces around it are dropped, or a space at the end. */
const AMBIGUOUS_SPACE = /%20$|\/(?:%20)*\.{1,2}(?:%20)*(?:\/|$)/;
const ENCODED = /%([0-9A-Fa-f]{2})?/g;
export const UNRESERVED = /^[A-Za-z0-9\-._~]$/;
export const MATCHED_DECODED = /^[!$&'()*+,=:@]$/;
const REFUSED = new Set(["/", "\\", ";", "?", "#"]);
const AMBIGUOUS_TWICE = /%25[0-9A-Fa-f]{2}/i;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Returns the canonical form of a path, or undefined if the path is ambiguous.
 *
 * @param raw the path of a request target in origin form, without the query.
 */
export function canonicalPath(raw: string): CanonicalPath | undefined {
  if (PLAIN.test(raw) && raw !== "") {
    return DOT_SEGMENT.test(raw) ? undefined : { path: raw, matchPath: raw };
  }
  return raw.includes("%") ? decodeOnce(raw) : undefined;
}

function decodeOnce(raw: string): CanonicalPath | undefined {
  let refused = false;
  let matchPath = "";
  let end = 0;
  const path = raw.replace(ENCODED, (sequence: string, hex: string | undefined, at: number) => {
    matchPath += raw.slice(end, at);
    end = at + sequence.length;
    const code = hex === undefined ? 0 : Number.parseInt(hex, 16);
    const character = String.fromCharCode(code);
    if (code < 0x20 || code === 0x7f || REFUSED.has(character)) {
      refused = true;
      return sequence;
    }
    if (UNRESERVED.test(character)) {
      matchPath += character;
      return character;
    }
    const upper = sequence.toUpperCase();
    matchPath += MATCHED_DECODED.test(character) ? character : upper;
    return upper;
  });
  matchPath += raw.slice(end);
  // Decoding may have revealed a second layer: `%25%32%65` becomes `%252e`.
  if (refused || AMBIGUOUS_SPACE.test(path) || AMBIGUOUS_TWICE.test(path)) return undefined;
  if (!PLAIN.test(path.replaceAll(/%[0-9A-F]{2}/g, "x"))) return undefined;
  return decodesToUtf8(path) ? { path, matchPath } : undefined;
}

/** Overlong forms, surrogates and stray continuation bytes are not UTF-8 (RFC 3629 §3). */
export function decodesToUtf8(path: string): boolean {
  const octets = Uint8Array.from(path.match(/%[0-9A-F]{2}|[^%]/g) ?? [], (part) =>
    part.length === 3 ? Number.parseInt(part.slice(1), 16) : part.charCodeAt(0),
  );
  try {
    utf8.decode(octets);
    return true;
  } catch {
    return false;
  }
}

/**
 * One spelling for every path, so that what is authorised is what arrives.
 *
 * Percent-encodings of unreserved characters are decoded and the hex digits of all others put in upper case: both are
 * equivalences of RFC 3986 §6.2.2. Whatever two readers could read differently is refused instead of mended: dot
 * segments, empty segments, back-slashes, semicolons (servlet containers cut path parameters off), encoded delimiters
 * (`%2F %5C %3B %3F %23`), encoded control characters, a second layer of encoding, and octets that are not UTF-8.
 */

/** A path in both of its readings. */
export interface CanonicalPath {
  /** What is forwarded. */
  readonly path: string;
  /** `path` with the remaining encodings of allowed characters decoded (`%40` → `@`): what routes are matched on. */
  readonly matchPath: string;
}

/** Segments of unreserved characters, sub-delimiters but `;`, `:` and `@`; dot segments are looked for separately. */
const PLAIN = /^(?:\/[A-Za-z0-9\-._~!$&'()*+,=:@]+)*\/?$/;
const DOT_SEGMENT = /\/\.{1,2}(?:\/|$)/;
const ENCODED = /%([0-9A-Fa-f]{2})?/g;
const UNRESERVED = /^[A-Za-z0-9\-._~]$/;
const MATCHED_DECODED = /^[!$&'()*+,=:@]$/;
const REFUSED = new Set(["/", "\\", ";", "?", "#"]);
const AMBIGUOUS_TWICE = /%25[0-9A-Fa-f]{2}/i;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * @param raw the path of a request target in origin form, without the query.
 * @returns its one spelling, or undefined when it could be read in more than one way.
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
  // Decoding may have put a second layer together: `%25%32%65` becomes `%252e`.
  if (refused || DOT_SEGMENT.test(path) || AMBIGUOUS_TWICE.test(path)) return undefined;
  if (!PLAIN.test(path.replaceAll(/%[0-9A-F]{2}/g, "x"))) return undefined;
  return isUtf8(path) ? { path, matchPath } : undefined;
}

/** Overlong forms, surrogates and stray continuation bytes are not UTF-8 (RFC 3629 §3). */
function isUtf8(path: string): boolean {
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

import { isUtf8 } from "node:buffer";

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

/** A path decoded once, in its two forms. */
export interface CanonicalPath {
  /** The path to forward. */
  readonly path: string;
  /** `path` with the encodings of allowed characters decoded (`%40` → `@`), to match routes against. */
  readonly matchPath: string;
}

/**
 * Segments of unreserved characters, sub-delimiters except `;`, `:` and `@`. An encoding must have been replaced before: `%`
 * never fits. Dot segments are checked separately.
 */
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

const UNRESERVED = /^[A-Za-z0-9\-._~]$/;
/** Allowed in a path segment besides the unreserved characters (RFC 3986 §3.3), except `;`. */
const ALLOWED = /^[!$&'()*+,=:@]$/;
const ESCAPED_TWICE = /%25[0-9A-Fa-f]{2}/i;

/** An octet that is encoded in a path. */
interface Octet {
  readonly character: string;
  /** What stands for it in the two forms; undefined for a control character. */
  readonly forms: CanonicalPath | undefined;
}

function octetOf(code: number): Octet {
  const character = String.fromCharCode(code);
  if (code < 0x20 || code === 0x7f) return { character, forms: undefined };
  const kept = { path: character, matchPath: character };
  if (UNRESERVED.test(character)) return { character, forms: kept };
  const path = `%${code.toString(16).toUpperCase()}`;
  return { character, forms: { path, matchPath: ALLOWED.test(character) ? character : path } };
}

const HEX_DIGITS = Array.from("0123456789abcdefABCDEF");
/** The octets by their two digits: made once, because a path may hold thousands of them. */
const OCTETS: ReadonlyMap<string, Octet> = new Map(
  HEX_DIGITS.flatMap((first) =>
    HEX_DIGITS.map((second) => [first + second, octetOf(Number.parseInt(first + second, 16))]),
  ),
);

/**
 * Decodes the percent-encodings of unreserved characters, and puts the hex digits of all others in upper case (RFC 3986
 * §6.2.2). Returns undefined if an encoding is malformed, stands for a control character, was encoded twice, or if the
 * octets are not UTF-8.
 *
 * @param refused characters that must not be encoded either.
 */
function decodeOnce(
  raw: string,
  refused: ReadonlySet<string> = new Set(),
): CanonicalPath | undefined {
  let path = "";
  let matchPath = "";
  let octets = "";
  let end = 0;
  for (let at = raw.indexOf("%"); at !== -1; at = raw.indexOf("%", end)) {
    const octet = OCTETS.get(raw.slice(at + 1, at + 3));
    if (octet?.forms === undefined || refused.has(octet.character)) return undefined;
    const unchanged = raw.slice(end, at);
    path += unchanged + octet.forms.path;
    matchPath += unchanged + octet.forms.matchPath;
    octets += unchanged + octet.character;
    end = at + 3;
  }
  path += raw.slice(end);
  matchPath += raw.slice(end);
  octets += raw.slice(end);
  // Overlong forms, surrogates and stray continuation bytes are not UTF-8 (RFC 3629 §3).
  if (!isUtf8(Buffer.from(octets, "latin1"))) return undefined;
  // Decoding may have revealed a second layer: `%25%32%65` becomes `%252e`.
  return ESCAPED_TWICE.test(path) ? undefined : { path, matchPath };
}

/** Replaces each percent-encoding by an `x`, so that an expression can test the characters around them. */
function withoutEscapes(path: string): string {
  return path.replaceAll(/%[0-9A-F]{2}/g, "x");
}

/**
 * Paths for backends that need more than the strict form. `encoded` also accepts encoded delimiters (`%2F`, `%3B`,
 * `%23`) and forwards them undecoded; `asSent` also accepts empty segments, path parameters and brackets. Both refuse
 * what two readers could resolve to different files: dot segments in any reading, double encoding, control
 * characters, and octets that are not UTF-8.
 */
export type PathSpelling = "strict" | "encoded" | "asSent";

/** A path that is not in the strict form, with the least `PathSpelling` that accepts it. */
interface LoosePath extends CanonicalPath {
  readonly spelling: Exclude<PathSpelling, "strict">;
}

/** Allows for spaces around the dots, because Windows drops them. */
const SPACED_DOT_SEGMENT = /\/ *\.{1,2} *(?:\/|$)/;
/** For a path in which each encoding was replaced by `x`. */
const AS_SENT_FORM = /^\/[A-Za-z0-9\-._~!$&'()*+,=:@/;[\]|{}^]*$/;

/** Whether a route that accepts `taken` accepts a path of this spelling. */
export function admitsSpelling(taken: PathSpelling, spelling: PathSpelling): boolean {
  return ORDER[spelling] <= ORDER[taken];
}

export function isSpelling(text: string): text is PathSpelling {
  return Object.hasOwn(ORDER, text);
}

const ORDER = { strict: 0, encoded: 1, asSent: 2 } as const;

/**
 * Returns the canonical form of a path that has no strict form.
 *
 * @param raw the path without the query.
 * @returns undefined if the path is ambiguous.
 */
export function loosePath(raw: string): LoosePath | undefined {
  const decoding = decodeOnce(raw);
  if (decoding === undefined) return undefined;
  const { path, matchPath } = decoding;
  const spelling = spellingOf(withoutEscapes(path));
  if (spelling === undefined) return undefined;
  if (pathReadings(matchPath).some((reading) => SPACED_DOT_SEGMENT.test(reading))) return undefined;
  return { path, matchPath, spelling };
}

function spellingOf(form: string): LoosePath["spelling"] | undefined {
  if (PLAIN.test(form)) return "encoded";
  return AS_SENT_FORM.test(form) ? "asSent" : undefined;
}

/**
 * A backend that parses a target as a URL, as `new URL(target, base)`, PHP's `parse_url` and Python's `urlsplit` do, takes what
 * follows `//` for a host (RFC 3986 §4.2).
 */
const withoutHost = (path: string): string => path.replace(/^\/\/+[^/]*/, "") || "/";

/** The changes that backends make to a path that is not in the strict form. */
const CHANGES: readonly ((path: string) => string)[] = [
  withoutHost,
  (path) =>
    path.replaceAll(/%([2-7][0-9A-F])/g, (_all, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    ),
  (path) => path.replaceAll("\\", "/"),
  withoutHost,
  (path) => path.replace(/[?#].*$/s, ""),
  (path) => path.replaceAll(/;[^/]*/g, ""),
  (path) => path.replaceAll(/\/{2,}/g, "/"),
  // The WHATWG URL parser does this to a decoded path.
  (path) => withoutEnd(path, " "),
];

/** The last result: intake and then the decision need the readings of the same path, which are up to 128 times its size. */
let last: { readonly matchPath: string; readonly readings: readonly string[] } | undefined;

/**
 * Returns all paths that some backend may read in a path: each of the changes, in order, is either made or left out.
 */
export function pathReadings(matchPath: string): readonly string[] {
  if (last?.matchPath === matchPath) return last.readings;
  let readings = [matchPath];
  for (const change of CHANGES) {
    readings = [...new Set(readings.flatMap((reading) => [reading, change(reading)]))];
  }
  last = { matchPath, readings };
  return readings;
}

/**
 * Returns a text without the occurrences of a character at its end. An expression such as ` +$` would try every run of the
 * character as the last one, in a time that grows with the square of its length.
 */
export function withoutEnd(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end -= 1;
  return text.slice(0, end);
}

/** Whether a path is one of ours, in any case: it may bring a password, so no backend gets it. */
export function isOwnPath(ownPath: string, matchPath: string): boolean {
  const { length } = ownPath;
  // Few other paths have the same second character.
  if (
    matchPath.length < length ||
    (matchPath[1] ?? "").toLowerCase() !== ownPath[1]?.toLowerCase()
  ) {
    return false;
  }
  const next = matchPath[length];
  if (next !== undefined && /[\w-]/.test(next)) return false;
  return matchPath.slice(0, length).toLowerCase() === ownPath.toLowerCase();
}

import { type CanonicalPath, decodeOnce, withoutEscapes } from "./canonical-path.ts";

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
const DOT_SEGMENT = /\/ *\.{1,2} *(?:\/|$)/;
/** For a path in which each encoding was replaced by `x`. */
const ENCODED_FORM = /^(?:\/[A-Za-z0-9\-._~!$&'()*+,=:@]+)*\/?$/;
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
  if (pathReadings(matchPath).some((reading) => DOT_SEGMENT.test(reading))) return undefined;
  return { path, matchPath, spelling };
}

function spellingOf(form: string): LoosePath["spelling"] | undefined {
  if (ENCODED_FORM.test(form)) return "encoded";
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

import type { CanonicalPath } from "./canonical-path.ts";
import { decodesToUtf8, MATCHED_DECODED, UNRESERVED } from "./canonical-path.ts";

/**
 * Paths for backends that need more than the strict form: `encoded` lets encoded delimiters pass undecoded (`%2F`, `%3B`,
 * `%23`), `asSent` also empty segments, path parameters and brackets. What two readers could resolve differently on the way
 * to a file is refused in both: dot segments in any reading, double encoding, control characters, octets that are not UTF-8.
 */
export type PathSpelling = "strict" | "encoded" | "asSent";

/** A path that is not strict, and what it needs. */
export interface LoosePath extends CanonicalPath {
  readonly spelling: Exclude<PathSpelling, "strict">;
}

const ENCODED = /%([0-9A-Fa-f]{2})?/g;
const AMBIGUOUS_TWICE = /%25(?:[0-9A-Fa-f]{2}|25)/i;
/** Also with spaces around the dots, which Windows drops. */
const DOT_SEGMENT = /\/ *\.{1,2} *(?:\/|$)/;
/** Encodings stand as `x`. */
const ENCODED_FORM = /^(?:\/[A-Za-z0-9\-._~!$&'()*+,=:@]+)*\/?$/;
const AS_SENT_FORM = /^\/[A-Za-z0-9\-._~!$&'()*+,=:@/;[\]|{}^]*$/;

/** Whether a route takes a path that is spelled in this way. */
export function admitsSpelling(taken: PathSpelling, spelling: PathSpelling): boolean {
  return ORDER[spelling] <= ORDER[taken];
}

export function isSpelling(text: string): text is PathSpelling {
  return Object.hasOwn(ORDER, text);
}

const ORDER = { strict: 0, encoded: 1, asSent: 2 } as const;

/** @returns undefined if the path is ambiguous. @param raw without the query; its strict form does not exist. */
export function loosePath(raw: string): LoosePath | undefined {
  let refused = false;
  let matchPath = "";
  let end = 0;
  const path = raw.replace(ENCODED, (sequence: string, hex: string | undefined, at: number) => {
    matchPath += raw.slice(end, at);
    end = at + sequence.length;
    const code = hex === undefined ? 0 : Number.parseInt(hex, 16);
    const character = String.fromCharCode(code);
    if (code < 0x20 || code === 0x7f) {
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
  if (refused || AMBIGUOUS_TWICE.test(path) || !decodesToUtf8(path)) return undefined;
  if (pathReadings(matchPath).some((reading) => DOT_SEGMENT.test(reading))) return undefined;
  const form = path.replaceAll(/%[0-9A-F]{2}/g, "x");
  if (ENCODED_FORM.test(form)) return { path, matchPath, spelling: "encoded" };
  return AS_SENT_FORM.test(form) ? { path, matchPath, spelling: "asSent" } : undefined;
}

/** What backends do to a path that is not strict. */
const CHANGES: readonly ((path: string) => string)[] = [
  (path) =>
    path.replaceAll(/%([2-7][0-9A-F])/g, (_all, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    ),
  (path) => path.replaceAll("\\", "/"),
  (path) => path.replace(/[?#].*$/s, ""),
  (path) => path.replaceAll(/;[^/]*/g, ""),
  (path) => path.replaceAll(/\/{2,}/g, "/"),
  // The WHATWG URL parser, of a path that was decoded before.
  (path) => path.replace(/ +$/, ""),
];

/** All paths that some backend reads in a path: with each of the changes made or left out, in their order. */
export function pathReadings(matchPath: string): readonly string[] {
  let readings = [matchPath];
  for (const change of CHANGES) {
    readings = [...new Set(readings.flatMap((reading) => [reading, change(reading)]))];
  }
  return readings;
}

/** A path decoded once, in its two forms. */
export interface CanonicalPath {
  /** The path to forward. */
  readonly path: string;
  /** `path` with the encodings of allowed characters decoded (`%40` → `@`), to match routes against. */
  readonly matchPath: string;
}

const ESCAPE = /%([0-9A-Fa-f]{2})?/g;
const UNRESERVED = /^[A-Za-z0-9\-._~]$/;
/** Allowed in a path segment besides the unreserved characters (RFC 3986 §3.3), except `;`. */
const ALLOWED = /^[!$&'()*+,=:@]$/;
const ESCAPED_TWICE = /%25[0-9A-Fa-f]{2}/i;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Decodes the percent-encodings of unreserved characters, and puts the hex digits of all others in upper case (RFC 3986
 * §6.2.2). Returns undefined if an encoding is malformed, stands for a control character, was encoded twice, or if the
 * octets are not UTF-8.
 *
 * @param refused characters that must not be encoded either.
 */
export function decodeOnce(
  raw: string,
  refused: ReadonlySet<string> = new Set(),
): CanonicalPath | undefined {
  let ambiguous = false;
  let matchPath = "";
  let end = 0;
  const path = raw.replace(ESCAPE, (sequence: string, hex: string | undefined, at: number) => {
    matchPath += raw.slice(end, at);
    end = at + sequence.length;
    const code = hex === undefined ? 0 : Number.parseInt(hex, 16);
    const character = String.fromCharCode(code);
    if (code < 0x20 || code === 0x7f || refused.has(character)) {
      ambiguous = true;
      return sequence;
    }
    if (UNRESERVED.test(character)) {
      matchPath += character;
      return character;
    }
    const upper = sequence.toUpperCase();
    matchPath += ALLOWED.test(character) ? character : upper;
    return upper;
  });
  matchPath += raw.slice(end);
  // Decoding may have revealed a second layer: `%25%32%65` becomes `%252e`.
  if (ambiguous || ESCAPED_TWICE.test(path) || !decodesToUtf8(path)) return undefined;
  return { path, matchPath };
}

/** Replaces each percent-encoding by an `x`, so that an expression can test the characters around them. */
export function withoutEscapes(path: string): string {
  return path.replaceAll(/%[0-9A-F]{2}/g, "x");
}

/** Overlong forms, surrogates and stray continuation bytes are not UTF-8 (RFC 3629 §3). */
function decodesToUtf8(path: string): boolean {
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

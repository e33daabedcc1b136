/**
 * Characters that JSON does not escape but terminals or line readers act on: DEL and C1 control characters, U+2028 and
 * U+2029 (line ends to some readers), and bidirectional marks (Trojan Source, CVE-2021-42574).
 */
const UNPRINTABLE = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Escapes unprintable characters inside a JSON text without changing its value. */
export function escapeUnprintable(json: string): string {
  return json.replace(
    UNPRINTABLE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Characters that need no escape in a JSON string or on a terminal: printable ASCII without `"` and `\`. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** Returns a JSON string with its quotes. Lone surrogates become escapes. */
export function quoted(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : escapeUnprintable(JSON.stringify(text));
}

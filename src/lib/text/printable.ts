/**
 * Characters that could control a terminal, end a line or reverse its direction: control and format characters, line
 * and paragraph separators, and unassigned code points.
 */
const UNSAFE = /[\p{C}\p{Zl}\p{Zp}]/gu;
const UNSAFE_EXCEPT_NEWLINE = /(?!\n)[\p{C}\p{Zl}\p{Zp}]/gu;

/** Returns the text on one line, with `?` for each character that could control a terminal. */
export function printable(text: string): string {
  return text.replaceAll(UNSAFE, "?");
}

/** The same for text of several lines. */
export function printableLines(text: string): string {
  return text.replaceAll(UNSAFE_EXCEPT_NEWLINE, "?");
}

/** Returns the text on one line, with an escape such as `\u{1b}` for each such character. */
export function escaped(text: string): string {
  return text.replaceAll(
    UNSAFE,
    (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ""}}`,
  );
}

/** Quotes a text if necessary, so that a POSIX shell reads it as one word. */
export function shellWord(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Joins words by commas and a last `or`: `a, b or c`. */
export function orList(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

/**
 * What could steer a terminal, end a line or turn it around: control characters, and what Unicode has beside them (separators
 * of lines and paragraphs, directions, what is not assigned).
 */
const STEERING = /[\p{C}\p{Zl}\p{Zp}]/gu;
const STEERING_WITHIN_LINES = /(?!\n)[\p{C}\p{Zl}\p{Zp}]/gu;

/** A text on one line, `?` in the place of what could steer a terminal. */
export function printable(text: string): string {
  return text.replaceAll(STEERING, "?");
}

/** The same for several lines. */
export function printableLines(text: string): string {
  return text.replaceAll(STEERING_WITHIN_LINES, "?");
}

/** A text on one line, `\u{1b}` in the place of what could steer a terminal: what it was can still be told. */
export function escaped(text: string): string {
  return text.replaceAll(
    STEERING,
    (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ""}}`,
  );
}

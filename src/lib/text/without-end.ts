/**
 * Returns a text without the occurrences of a character at its end. An expression such as ` +$` would try every run of the
 * character as the last one, in a time that grows with the square of its length.
 */
export function withoutEnd(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end -= 1;
  return text.slice(0, end);
}

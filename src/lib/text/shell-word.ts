/** Quotes a text if necessary, so that a POSIX shell reads it as one word. */
export function shellWord(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** `1h30m`, `5m`, `10s`, `500ms`: whole numbers with units, the largest first. Also valid as a JSON Schema pattern. */
export const DURATION = /^(?=\d)(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+)s)?(?:(\d+)ms)?$/;

const MILLISECONDS = [3_600_000, 60_000, 1_000, 1];

/** Returns milliseconds, or undefined if the text is not a duration. A number without a unit is not one. */
export function parseDuration(text: string): number | undefined {
  const found = DURATION.exec(text);
  if (found === null) return undefined;
  return MILLISECONDS.reduce((sum, unit, index) => sum + Number(found[index + 1] ?? 0) * unit, 0);
}

/** Returns the shortest spelling of whole milliseconds: 5_400_000 is `1h30m`. */
export function formatDuration(milliseconds: number): string {
  const names = ["h", "m", "s", "ms"];
  let rest = milliseconds;
  let text = "";
  for (const [index, unit] of MILLISECONDS.entries()) {
    const count = Math.floor(rest / unit);
    rest -= count * unit;
    if (count > 0) text += `${count}${names[index]}`;
  }
  return text === "" ? "0s" : text;
}

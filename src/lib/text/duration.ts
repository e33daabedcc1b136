/** `512B`, `16KiB`, `10MiB`, `1GiB`: a whole number with a binary unit (IEC 80000-13). */
export const SIZE = /^(\d+)(B|KiB|MiB|GiB)$/;

const UNITS = ["B", "KiB", "MiB", "GiB"];

/** Returns bytes, or undefined if the text is not a size. A number without a unit is not one. */
export function parseSize(text: string): number | undefined {
  const found = SIZE.exec(text);
  if (found === null) return undefined;
  const [, count = "", unit = ""] = found;
  return Number(count) * 1024 ** UNITS.indexOf(unit);
}

/** Returns the shortest exact spelling of whole bytes: 16_384 is `16KiB`. */
export function formatSize(bytes: number): string {
  let count = bytes;
  let unit = 0;
  while (count > 0 && count % 1024 === 0 && unit < UNITS.length - 1) {
    count /= 1024;
    unit += 1;
  }
  return `${count}${UNITS[unit]}`;
}

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

/** The same without fractions of a second. */
export function formatSeconds(milliseconds: number): string {
  return formatDuration(Math.max(0, Math.floor(milliseconds / 1000) * 1000));
}

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

let second = Number.NaN;
let prefix = "";

/** Returns a time in ISO 8601 and UTC up to the dot before the milliseconds. Cached: it changes once a second. */
export function isoSecond(epochMs: number): string {
  const current = Math.floor(epochMs / 1000);
  if (current !== second) {
    prefix = new Date(current * 1000).toISOString().slice(0, -4);
    second = current;
  }
  return prefix;
}

/** Returns a time in ISO 8601 and UTC, with milliseconds. */
export function isoTime(epochMs: number): string {
  return `${isoSecond(epochMs)}${String(millisecond(epochMs)).padStart(3, "0")}Z`;
}

/** Returns the milliseconds within the second, 0 to 999. */
export function millisecond(epochMs: number): number {
  return Math.floor(epochMs) - Math.floor(epochMs / 1000) * 1000;
}

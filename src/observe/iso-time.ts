let second = Number.NaN;
let prefix = "";

/** ISO 8601 in UTC with milliseconds. The part down to the second is formatted once a second. */
export function isoTime(epochMs: number): string {
  const current = Math.floor(epochMs / 1000);
  if (current !== second) {
    prefix = new Date(current * 1000).toISOString().slice(0, -4);
    second = current;
  }
  const ms = Math.floor(epochMs - current * 1000);
  return `${prefix}${ms < 10 ? "00" : ms < 100 ? "0" : ""}${ms}Z`;
}

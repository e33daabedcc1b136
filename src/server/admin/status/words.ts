import { formatDuration } from "../../../lib/text/duration.ts";

/** The words of the status page and of `sallyport top`. */

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** Returns a time span with two units at most: `3d 4h`, `12m 5s`, `0s`. */
export function span(milliseconds: number): string {
  const ms = Math.max(0, milliseconds);
  const days = Math.floor(ms / DAY_MS);
  if (days > 99) return `${days}d`;
  const hours = Math.floor((ms % DAY_MS) / HOUR_MS);
  if (days > 0) return hours === 0 ? `${days}d` : `${days}d ${hours}h`;
  const unit = ms >= HOUR_MS ? MINUTE_MS : SECOND_MS;
  const text = formatDuration(Math.floor(ms / unit) * unit);
  return text.replace(/(?<=[hm])(?=\d)/, " ");
}

/** Returns `in 3d 4h` or `5m 2s ago`. */
export function relative(at: number, now: number): string {
  return at > now ? `in ${span(at - now)}` : `${span(now - at)} ago`;
}

/** Returns `2026-11-22 10:00:00 UTC`. */
export function moment(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** Returns `10:00:00`, in UTC. */
export function clockTime(at: number): string {
  return new Date(at).toISOString().slice(11, 19);
}

/** Returns `0.4 ms`, `12 ms` or `3.2s`; empty if it is unknown. */
export function latency(ms: number | undefined): string {
  if (ms === undefined) return "";
  if (ms >= SECOND_MS) return `${(ms / SECOND_MS).toFixed(1)}s`;
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

const THOUSANDS = new Intl.NumberFormat("en-US");

/** Returns `12,345`. */
export function amount(count: number): string {
  return THOUSANDS.format(count);
}

const UNITS = ["B", "KiB", "MiB", "GiB"];

/** Returns `12.3 MiB`. */
export function bytes(count: number): string {
  let value = count;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

import { isIP, isIPv4, isIPv6 } from "node:net";
import { resolve } from "node:path";
import { z } from "zod";
import { canonicalPath } from "../lib/canonical-path.ts";
import { DURATION, formatDuration, parseDuration } from "../lib/duration.ts";
import { formatSize, parseSize, SIZE } from "../lib/size.ts";

/** The kinds of values that the configuration is made of. Messages continue the key's name: "must be …". */

/** `setTimeout` fires at once when it is asked for more: 24 days, 20 hours and a bit. */
const LONGEST_TIMER = 2 ** 31 - 1;

const DURATION_UNIT_MISSING = "has no unit: write ms, s, m or h behind the number, as in 30s";
const SIZE_UNIT_MISSING = "has no unit: write B, KiB, MiB or GiB behind the number, as in 16KiB";

/** @returns a field for text such as `1h30m`, read as milliseconds; `min` and `max` are in milliseconds. */
export function duration({ min = 1, max = LONGEST_TIMER } = {}) {
  const wrong = (issue: { input?: unknown }): string =>
    isNumeric(issue.input)
      ? DURATION_UNIT_MISSING
      : "must be a duration such as 500ms, 30s, 5m or 1h30m";
  return z
    .string({ error: wrong })
    .regex(DURATION, { error: wrong })
    .transform((text, context) => {
      const milliseconds = parseDuration(text) ?? Number.NaN;
      if (milliseconds >= min && milliseconds <= max) return milliseconds;
      const message = `must be from ${formatDuration(min)} to ${formatDuration(max)}`;
      context.issues.push({ code: "custom", message, input: text });
      return z.NEVER;
    });
}

/** @returns a field for text such as `16KiB`, read as bytes; `min` and `max` are in bytes. */
export function size({ min = 1, max = 2 ** 40 } = {}) {
  return z
    .string({ error: wrongSize })
    .regex(SIZE, { error: wrongSize })
    .transform((text, context) => sizeWithin(text, min, max, context));
}

/** @returns a field like `size`, where `unlimited` is read as Infinity. */
export function sizeOrUnlimited({ min = 1, max = 2 ** 40 } = {}) {
  return z
    .string({ error: wrongSize })
    .regex(new RegExp(`${SIZE.source}|^unlimited$`), { error: wrongSize })
    .transform((text, context) =>
      text === "unlimited" ? Infinity : sizeWithin(text, min, max, context),
    );
}

function wrongSize(issue: { input?: unknown }): string {
  return isNumeric(issue.input) ? SIZE_UNIT_MISSING : "must be a size such as 512B, 16KiB or 10MiB";
}

function sizeWithin(text: string, min: number, max: number, context: z.RefinementCtx): number {
  const bytes = parseSize(text) ?? Number.NaN;
  if (bytes >= min && bytes <= max) return bytes;
  const message = `must be from ${formatSize(min)} to ${formatSize(max)}`;
  context.issues.push({ code: "custom", message, input: text });
  return z.NEVER;
}

function isNumeric(value: unknown): boolean {
  return typeof value === "number" || (typeof value === "string" && /^\d+(?:\.\d+)?$/.test(value));
}

/** Text on one line, not empty. */
export function text() {
  return z
    .string()
    .min(1, "must not be empty")
    .refine((value) => !/\p{Cc}/u.test(value), "must not hold control characters");
}

/** @returns a field for a path of a file, read as an absolute path; relative ones start at `directory`. */
export function filePath(directory: string) {
  return text().transform((path) => resolve(directory, path));
}

const ADDRESS_AND_PORT = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/;
const HOST_NAME =
  /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;

/** An address to listen on, `0.0.0.0:8443` or `[::]:8443`. */
export function listen() {
  const message = "must be an address and a port, such as 0.0.0.0:8443 or [::]:8443";
  return z
    .string({ error: message })
    .regex(ADDRESS_AND_PORT, message)
    .transform((value, context) => {
      const [, v6, name, digits] = ADDRESS_AND_PORT.exec(value) ?? [];
      const host = v6 ?? name ?? "";
      const port = Number(digits);
      const sound = v6 === undefined ? isHost(host) : isIPv6(host);
      if (sound && port <= 65_535) return { host, port };
      context.issues.push({ code: "custom", message, input: value });
      return z.NEVER;
    });
}

/** A host name or an IPv4 address; `1.2.3` and `300.1.1.1` are neither. */
export function isHost(host: string): boolean {
  return /^[\d.]+$/.test(host) ? isIPv4(host) : HOST_NAME.test(host);
}

/** An address or a CIDR range. */
export function network() {
  return z.string().refine((value) => {
    const [address = "", prefix, ...more] = value.split("/");
    const family = address.includes("%") ? 0 : isIP(address);
    if (family === 0 || more.length > 0) return false;
    return (
      prefix === undefined ||
      (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128))
    );
  }, "must be an address or a network, such as 10.0.0.0/8");
}

/** A path in the spelling that requests are matched on. */
export function urlPath() {
  return z.string().superRefine((path, context) => {
    const matched = path.startsWith("/") ? canonicalPath(path)?.matchPath : undefined;
    if (matched === path) return;
    const message = !path.startsWith("/")
      ? "must begin with a slash"
      : "must be a plain path: no //, no dot segments, no query, nothing encoded without need";
    const hint = matched === undefined ? {} : { params: { hint: `did you mean ${matched}?` } };
    context.addIssue({ code: "custom", message, input: path, ...hint });
  });
}

/** The name of a route or an upstream: a label in metrics. */
export function name() {
  return z.string().regex(NAME, "must be 1 to 64 of a-z, 0-9, _ and -");
}

export const NAME = /^[a-z0-9_-]{1,64}$/;

import { resolve } from "node:path";
import { isIP, isIPv4, isIPv6 } from "node:net";
import { z } from "zod";
import { LONGEST_TIMER_MS } from "../lib/clock.ts";
import {
  DURATION,
  formatDuration,
  formatSize,
  parseDuration,
  parseSize,
  SIZE,
} from "../lib/text/duration.ts";
import { isSafeRemoteUrl, SAFE_REMOTE_URL } from "../lib/http/remote-request.ts";
import { PathExpression } from "../core/route/route.ts";
import { ExpressionError } from "../lib/automaton/expression.ts";
import { canonicalPath } from "../lib/http/path/canonical-path.ts";

/** The types of values in the configuration. Messages continue the name of the key: "must be …". */

const DURATION_UNIT_MISSING = "has no unit: write ms, s, m or h after the number, as in 30s";

const SIZE_UNIT_MISSING = "has no unit: write B, KiB, MiB or GiB after the number, as in 16KiB";

/** The texts that are durations. */
export const DURATIONS = z.registry();

/** @returns a field for a duration such as `1h30m`, parsed to milliseconds; `min` and `max` are in milliseconds. */
export function duration({ min = 1, max = LONGEST_TIMER_MS } = {}) {
  const wrong = (issue: { input?: unknown }): string =>
    isNumeric(issue.input)
      ? DURATION_UNIT_MISSING
      : "must be a duration such as 500ms, 30s, 5m or 1h30m";
  const written = z.string({ error: wrong }).regex(DURATION, { error: wrong });
  DURATIONS.add(written);
  return written.transform((text, context) => {
    const milliseconds = parseDuration(text) ?? Number.NaN;
    if (milliseconds >= min && milliseconds <= max) return milliseconds;
    return refuse(context, `must be from ${formatDuration(min)} to ${inDays(max)}`);
  });
}

/** Returns a longest duration for people: long ones in whole days. */
function inDays(milliseconds: number): string {
  const days = Math.floor(milliseconds / ONE_DAY);
  return days < 3 ? formatDuration(milliseconds) : `${days} days (${days * 24}h)`;
}

/** @returns a field for a duration of whole seconds. */
export function wholeSeconds(bounds: Parameters<typeof duration>[0]) {
  return duration(bounds).refine(
    (milliseconds) => milliseconds % 1_000 === 0,
    "must be whole seconds",
  );
}

/** @returns a field for a size such as `16KiB`, parsed to bytes; `min` and `max` are in bytes. */
export function size({ min = 1, max = 2 ** 40, form = SIZE } = {}) {
  return z
    .string({ error: wrongSize })
    .regex(form, { error: wrongSize })
    .transform((text, context) => {
      if (text === "unlimited") return Infinity;
      const bytes = parseSize(text) ?? Number.NaN;
      if (bytes >= min && bytes <= max) return bytes;
      return refuse(context, `must be from ${formatSize(min)} to ${formatSize(max)}`);
    });
}

/** @returns a field like `size` that also accepts `unlimited`, parsed to Infinity. */
export function sizeOrUnlimited() {
  return size({ form: new RegExp(`${SIZE.source}|^unlimited$`) });
}

function wrongSize(issue: { input?: unknown }): string {
  return isNumeric(issue.input) ? SIZE_UNIT_MISSING : "must be a size such as 512B, 16KiB or 10MiB";
}

function isNumeric(value: unknown): boolean {
  return typeof value === "number" || (typeof value === "string" && /^\d+(?:\.\d+)?$/.test(value));
}

/** @returns a field for a whole number from `min` to `max`. */
export function whole(min: number, max: number) {
  return z.int().min(min).max(max);
}

/** @returns a field for true or false. */
export function flag(preset: boolean) {
  return z.boolean().default(preset);
}

/** @returns a field for one of several words. */
export function oneOf<const Words extends readonly string[]>(words: Words, preset: Words[number]) {
  return z.enum(words).default(preset);
}

/** Text on one line, not empty. */
export function text() {
  return line().min(1, "must not be empty");
}

/** Text on one line. */
export function line() {
  return z
    .string()
    .refine((value) => !/\p{Cc}/u.test(value), "must not contain control characters");
}

/** Refuses a value, with a message that continues the name of the key. */
export function refuse(
  context: Pick<z.RefinementCtx, "addIssue">,
  message: string,
  { hint, path }: { readonly hint?: string | undefined; readonly path?: string[] } = {},
): never {
  const params = hint === undefined ? {} : { params: { hint } };
  context.addIssue({ code: "custom", message, ...params, ...(path && { path }) });
  return z.NEVER;
}

/** The directory to which relative paths refer, during the current parse. */
let base = "/";

/** Runs `parse`, which must be synchronous, with `directory` as the base of relative paths. */
export function withPathsFrom<T>(directory: string, parse: () => T): T {
  const outer = base;
  base = directory;
  try {
    return parse();
  } finally {
    base = outer;
  }
}

/** @returns the absolute path for a written one, during the current parse. */
export function absolute(path: string): string {
  return resolve(base, path);
}

/** How Sallyport uses a file that a key names. */
export interface FileUse {
  readonly kind: "file" | "directory";
  /**
   * How it is read again. `reload`: a change triggers a reload of the configuration. `reader`: it is read with the
   * configuration, and then watched by the component that uses it. `request`: it is read when needed, never in advance.
   */
  readonly readAgainBy: "reload" | "reader" | "request";
  /** Whether it is secret, so that other users must not be able to read it. */
  readonly secret: boolean;
  /** Maximum size in bytes; by default that of `readRegularFile`. */
  readonly maxBytes?: number;
}

/** The use of the files, by field. */
export const FILE_USES = z.registry<FileUse>();

/**
 * @returns a field for the path of a file, parsed to an absolute path. `namedFiles` finds the field, so the file is
 * read, checked and followed without further code.
 */
export function filePath(use: Partial<FileUse> = {}) {
  const field = text().transform(absolute);
  FILE_USES.add(field, { kind: "file", readAgainBy: "reload", secret: false, ...use });
  return field;
}

const ADDRESS_AND_PORT = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/;

const HOST_NAME =
  /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;

/** An address to listen on: `0.0.0.0:8443` or `[::]:8443`. */
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
      return sound && port <= 65_535 ? { host, port } : refuse(context, message);
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

/** The name of a route or an upstream: a label in metrics. */
export function name() {
  return z.string().regex(NAME, "must be 1 to 64 of a-z, 0-9, _ and -");
}

export const NAME = /^[a-z0-9_-]{1,64}$/;

/** The key under which an entry of a mapping stands: the name of an upstream, of a network. */
export function entryName() {
  return z.string().regex(NAME, "is not a name: 1 to 64 of a-z, 0-9, _ and -");
}

/** A token of HTTP, such as the name of a header (RFC 9110 §5.6.2). */
export const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The name of a method. */
export const METHOD = /^[A-Z]+(?:-[A-Z]+)*$/;

export function headerName() {
  return z.string().regex(TOKEN, "must be the name of a header");
}

const LONGEST_CLAIM_NAME = 256;

/** The name of a claim, or a path into objects: `realm_access.roles`. */
export function claimName() {
  return text().refine(
    (value) => value.length <= LONGEST_CLAIM_NAME,
    `must not be longer than ${LONGEST_CLAIM_NAME} characters`,
  );
}

/** The fields of every server that Sallyport queries about a request. */

const ONE_HOUR = 3_600_000;
const ONE_DAY = 24 * ONE_HOUR;

const ONE_MINUTE = 60_000;

/** The URL of a server whose responses are trusted. */
export function remoteUrl() {
  return text()
    .refine((url) => !url.includes("#"), "must have no fragment: the part after # is never sent")
    .refine((url) => url.includes("#") || isSafeRemoteUrl(url), SAFE_REMOTE_URL);
}

/** The fields for requests to such a server, except its URL. */
export function remoteAccess() {
  return {
    caFile: optional("Authorities, PEM; default: Node's", filePath({ readAgainBy: "reader" })),
    tokenFile: filePath({ readAgainBy: "request" })
      .exactOptional()
      .describe("File with the bearer token for the server"),
  };
}

/** The timeout of a response, and how long it is cached. */
export function remoteTimes({ timeout, cache }: { timeout: string; cache: string }) {
  return {
    timeout: duration({ max: ONE_MINUTE }).prefault(timeout).describe("Time for the response"),
    cache: duration({ min: 0, max: ONE_HOUR })
      .prefault(cache)
      .describe("How long to cache a yes; a no: at most 5s"),
  };
}

/** How long a server may be away. */
export function staleTime() {
  return duration({ min: 0, max: ONE_DAY })
    .prefault("0s")
    .describe("How long a yes counts beyond cache while the server cannot be asked");
}

/** The API server of Kubernetes. */
export function apiServer() {
  return remoteUrl().default("https://kubernetes.default.svc").describe("URL of the API server");
}

/** What an authorization server's failure means for a request. */
export const onError = () =>
  oneOf(["unavailable", "deny"], "unavailable").describe(
    "Response if the server cannot decide: 503, or 403 (deny)",
  );

/** How a field uses its path: as a prefix to match, as the only path to match, or as plain text. */
export type PathUse = "prefix" | "exact" | "plain";

/**
 * A path in the canonical form with which requests are matched. Rejects text that looks like a pattern; `%2A`, `%3A`,
 * `%24` and `%2B` stand for the literal characters.
 */
export function urlPath(use: PathUse) {
  return z.string().transform((path, context) => {
    const problem = patternProblem(path, use) ?? spellingProblem(path);
    return problem === undefined
      ? withoutEscapes(path)
      : refuse(context, problem.message, { hint: problem.hint });
  });
}

/** A regular expression for paths, as text. */
export function pathRegex() {
  return z.string().superRefine((text, context) => {
    const problem = expressionProblem(text);
    if (problem !== undefined) refuse(context, problem.message, { hint: problem.hint });
  });
}

function expressionProblem(text: string): SyntaxProblem | undefined {
  try {
    if (new PathExpression(text).beginning.startsWith("/")) return undefined;
    return { message: "must begin with a literal slash" };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    const { message, at, hint } = error;
    return { message: at === undefined ? message : `${message}, at character ${at}`, hint };
  }
}

interface SyntaxProblem {
  readonly message: string;
  readonly hint?: string | undefined;
}

/** Decodes the escapes that prevent a character from being taken for a pattern. */
export function withoutEscapes(path: string): string {
  return path.replaceAll(/%(?:2A|2B|3A|24)/gi, decodeURIComponent);
}

/** Signs of wildcards, parameters and regular expressions, each with a message. */
const PATTERNS: readonly (readonly [found: RegExp, what: string])[] = [
  [/^\s*(?:\^|~\*?\s|=\s|\^~\s)/, "is a plain path, not a regular expression"],
  [/\.[*+]|[[\]|\\^]|\(\?|\$$/, "is a plain path, not a regular expression"],
  [/\*/, "is a plain path, without wildcards"],
  [/\/:|[{}]/, "is a plain path, without parameters"],
  [/\?/, "is a path without a query, and ? has no other meaning"],
];

/** Prefixes of paths in other configuration languages: `^/api`, nginx's `~ ^/api` and `= /api`. */
const SIGNS = /^[\s^~=*]+/;

const FIRST_MARK = /\.[*+]|[*?{}[\]|\\^()$]|\/:/;

function patternProblem(path: string, use: PathUse): SyntaxProblem | undefined {
  const what = PATTERNS.find(([found]) => found.test(path))?.[1];
  if (what === undefined) return undefined;
  const bare = path.replace(SIGNS, "");
  const mark = bare.search(FIRST_MARK);
  const ends = bare.endsWith("$") && mark === bare.length - 1;
  // The segment before any other mark may be incomplete.
  const stem =
    mark === -1 || ends ? bare.replace(/\$$/, "") : bare.slice(0, bare.lastIndexOf("/", mark) + 1);
  return { message: what, hint: stem.startsWith("/") ? adviceFor(use, stem, ends) : undefined };
}

function adviceFor(use: PathUse, stem: string, ends: boolean): string {
  const literal = "%2A, %3A, %24 and %2B stand for *, :, $ and + themselves";
  if (use === "plain") return `write ${stem === "/" ? stem : stem.replace(/\/$/, "")}; ${literal}`;
  const other = `a regular expression goes under regex; ${literal}`;
  if (ends) return `for this one path write exact: ${stem}; ${other}`;
  return use === "exact"
    ? `exact takes one path; for all below it write path: ${stem}; ${other}`
    : `a path is a prefix already: write ${stem}; ${other}`;
}

function spellingProblem(path: string): SyntaxProblem | undefined {
  if (!path.startsWith("/")) return { message: "must begin with a slash" };
  const matched = canonicalPath(path)?.matchPath;
  if (matched === withoutEscapes(path)) return undefined;
  return {
    message: "must be a plain path: no //, no dot segments, no query, no unnecessary encoding",
    hint: matched === undefined ? undefined : `did you mean ${matched}?`,
  };
}

/** A mapping with these keys alone. */
export function mapping<Shape extends z.ZodRawShape>(about: string, shape: Shape) {
  return z.strictObject(shape).describe(about);
}

/** A key that may be left out, and then means nothing or what `about` says. */
export function optional<Type extends z.ZodType>(about: string, type: Type) {
  return type.exactOptional().describe(about);
}

export function optionalMapping<Shape extends z.ZodRawShape>(about: string, shape: Shape) {
  return optional(about, z.strictObject(shape));
}

/** A mapping that may be left out as a whole. The compiler refuses a shape with a key that may not. */
export function settings<Shape extends z.ZodRawShape>(
  about: string,
  shape: Shape & (Record<string, never> extends z.input<z.ZodObject<Shape>> ? unknown : never),
): z.ZodPrefault<z.ZodObject<Shape, z.core.$strict>>;
export function settings(about: string, shape: z.ZodRawShape) {
  return z.strictObject(shape).prefault({}).describe(about);
}

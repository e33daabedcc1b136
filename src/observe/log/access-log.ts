import type { Log } from "../../core/log.ts";
import type { Observer } from "../../core/observer.ts";
import type { AccessFields, LoggedRequest, Outcome } from "../../core/request/outcome.ts";
import type { Clock } from "../../lib/clock.ts";
import type { RecentLog } from "../recent/recent-log.ts";
import { LineBytes } from "./line-bytes.ts";
import { maskText, maskTokens } from "./redaction.ts";

/** The maximum length of a logged value, in characters; longer ones are truncated. */
const LONGEST = 512;
/**
 * How much of a value is examined, in characters: enough that truncation cannot hide part of a secret from the mask.
 */
const LOOKED_AT = 2 * LONGEST;

const SOURCE = /^(header|claim|request):(.+)$/s;

/** `Referer`, and headers such as `X-Original-URI`, in which proxies repeat the URL of the request. */
const URL_HEADER = /^(?:referer|ping-(?:from|to))$|[-_](?:ur[il]|path|referrer)$/;
/** From `?` or `#` on, perhaps encoded. */
const QUERY = /(?:[?#]|%(?:25)?(?:3f|23)).*$/is;

type Value = (request: LoggedRequest) => string | undefined;

/** What is known of a request beside its headers and its caller: the names behind `request:`. */
const REQUEST_FIELDS: Readonly<Record<string, Value>> = {
  scheme: ({ secure }) => (secure ? "https" : "http"),
  tls_version: ({ tlsVersion }) => tlsVersion,
  attempts: ({ attempts }) => String(attempts),
};
export const REQUEST_FIELD_NAMES = Object.keys(REQUEST_FIELDS);

/** The source of a field, parsed from `log.fields`: `header:User-Agent`, `claim:tenant`, `request:attempts`. */
interface FieldSource {
  readonly kind: "header" | "claim" | "request";
  readonly name: string;
}

/** Parses a value of `log.fields`. Returns undefined if its form is invalid. */
export function fieldSource(written: string): FieldSource | undefined {
  const [, kind, name] = SOURCE.exec(written) ?? [];
  if (name === undefined) return undefined;
  return kind === "header" || kind === "claim" || kind === "request" ? { kind, name } : undefined;
}

/**
 * Prepares the additional fields of access lines.
 *
 * @param fields the sources of the fields, by field name.
 * @param leastStatus the lowest status that gets a line.
 * @returns undefined if there are no fields.
 */
export function createAccessFields(
  fields: Readonly<Record<string, string>>,
  leastStatus: number,
): AccessFields | undefined {
  const values = Object.entries(fields).flatMap(([field, written]): [string, Value][] => {
    const source = fieldSource(written);
    return source === undefined ? [] : [[field, valueOf(source)]];
  });
  if (values.length === 0) return undefined;
  return (request) => {
    if (request.status < leastStatus) return undefined;
    const found: string[] = [];
    for (const [field, value] of values) {
      const text = value(request);
      if (text !== undefined) found.push(field, bounded(text));
    }
    return found;
  };
}

function valueOf({ kind, name }: FieldSource): Value {
  if (kind === "request") return REQUEST_FIELDS[name] ?? (() => undefined);
  if (kind === "claim") {
    return ({ identity }) => {
      const claim = identity?.claims?.get(name);
      return typeof claim === "object" ? claim.join(",") : claim?.toString();
    };
  }
  const header = name.toLowerCase();
  const read: Value = ({ headers }) => {
    const value = headers[header];
    return typeof value === "object" ? value.join(", ") : value;
  };
  // A URL may contain a query, which access lines must not contain.
  return URL_HEADER.test(header) ? (request) => read(request)?.replace(QUERY, "") : read;
}

/** Masks secrets and truncates the text. Masks first, so that no part of a token remains. */
function bounded(text: string): string {
  const masked = maskText(text.length > LOOKED_AT ? text.slice(0, LOOKED_AT) : text);
  return masked.length > LONGEST ? `${masked.slice(0, LONGEST)}…` : masked;
}

/** The fields of an access line, in their order. */
export const ACCESS_FIELDS = [
  "time",
  "level",
  "msg",
  "id",
  "request_id",
  "client",
  "method",
  "host",
  "path",
  "route",
  "upstream",
  "target",
  "status",
  "source",
  "auth",
  "reason",
  "subject",
  "bytes_in",
  "bytes_out",
  "duration_ms",
  "upstream_ms",
  "protocol",
  "trace_id",
] as const;

interface ObserverOptions {
  /** Counts everything. */
  readonly metrics: Observer;
  /** Keeps logins and refusals for the status page. */
  readonly recent: RecentLog;
  /** Copies the bytes of each access line. */
  readonly sink: { writeBytes(line: LineBytes): void };
  readonly clock: Clock;
  /** The minimum level of access lines: `warn` writes only Sallyport's own failures, `error` none. */
  readonly level: keyof Log;
  /** The requests that get an access line; `errors` means a status of 400 or higher. */
  readonly access: "all" | "errors" | "none";
}

/** Returns the lowest status that gets an access line. */
export function leastLoggedStatus(access: ObserverOptions["access"]): number {
  if (access === "none") return Infinity;
  return access === "errors" ? 400 : 0;
}

/** Counts everything in the metrics, and writes the access lines of finished requests. */
export function createObserver(options: ObserverOptions): Observer {
  const { metrics, recent, sink, clock, level, access } = options;
  const writesInfo = level === "debug" || level === "info";
  const writesWarn = level !== "error";
  const leastStatus = leastLoggedStatus(access);
  const line = new LineBytes();
  return {
    ...metrics,
    loginFinished(result, seconds) {
      metrics.loginFinished(result, seconds);
      recent.loginFinished(result);
    },
    requestRefused(reason) {
      metrics.requestRefused(reason);
      recent.requestRefused(reason);
    },
    requestFinished(outcome) {
      metrics.requestFinished(outcome);
      const now = clock.now();
      recent.requestFinished(outcome, now);
      const { status, source } = outcome;
      if (status >= 400 && source !== "upstream") recent.requestFailed(outcome);
      if (status < leastStatus) return;
      if (writesInfo || (writesWarn && accessLevel(outcome) === "warn")) {
        writeAccessLine(line, outcome, now);
        sink.writeBytes(line);
      }
    },
  };
}

/**
 * Returns `warn` for Sallyport's own 5xx and for requests that a drain cut off, else `info`: a backend's 5xx is not
 * our failure.
 */
function accessLevel({ source, status, reason }: Outcome): "info" | "warn" {
  return (source !== "upstream" && status >= 500) || reason === "drain_timeout" ? "warn" : "info";
}

/**
 * Writes the access line of one request: JSON without a line end, fields in a fixed order, undefined fields omitted.
 * It is on the hot path, so it does not use `JSON.stringify`.
 *
 * @param now wall clock, milliseconds since the epoch.
 */
export function writeAccessLine(line: LineBytes, outcome: Outcome, now: number): void {
  line.begin('{"time":', now);
  line.text(',"level":', accessLevel(outcome));
  line.text(',"msg":', "request");
  line.integer(',"id":', outcome.id);
  line.text(',"request_id":', outcome.requestId);
  line.text(',"client":', outcome.client);
  line.text(',"method":', outcome.method);
  line.text(',"host":', outcome.host);
  line.text(',"path":', maskTokens(outcome.path));
  line.text(',"route":', outcome.route);
  line.text(',"upstream":', outcome.upstream);
  line.text(',"target":', outcome.target);
  line.integer(',"status":', outcome.status);
  line.text(',"source":', outcome.source);
  line.text(',"auth":', outcome.auth);
  line.text(',"reason":', outcome.reason);
  line.text(',"subject":', outcome.subject);
  line.integer(',"bytes_in":', outcome.bytesIn);
  line.integer(',"bytes_out":', outcome.bytesOut);
  line.milliseconds(',"duration_ms":', outcome.durationMs);
  line.milliseconds(',"upstream_ms":', outcome.upstreamMs);
  line.text(',"protocol":', outcome.protocol);
  line.text(',"trace_id":', outcome.traceId);
  if (outcome.fields !== undefined) writeFields(line, outcome.fields);
  line.plain("}");
}

/** @param fields names and values, alternating. */
function writeFields(line: LineBytes, fields: readonly string[]): void {
  for (let i = 0; i < fields.length; i += 2) {
    line.text(",", fields[i]);
    line.text(":", fields[i + 1]);
  }
}

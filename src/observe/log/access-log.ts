import type { Outcome } from "../../core/request/outcome.ts";
import type { LineBytes } from "./line-bytes.ts";
import { maskTokens } from "./redaction.ts";

/** The fields of an access line, in their order. */
export const ACCESS_FIELDS = [
  ...(["time", "level", "msg", "id", "request_id", "client", "method", "host", "path"] as const),
  ...(["route", "upstream", "target", "status", "source", "auth", "reason", "subject"] as const),
  ...(["bytes_in", "bytes_out", "duration_ms", "upstream_ms", "protocol", "trace_id"] as const),
] as const;

/**
 * Returns `warn` for Sallyport's own 5xx and for requests that a drain cut off, else `info`: a backend's 5xx is not
 * our failure.
 */
export function accessLevel({ source, status, reason }: Outcome): "info" | "warn" {
  return (source === "self" && status >= 500) || reason === "drain_timeout" ? "warn" : "info";
}

/**
 * Writes the access line of one request: JSON without a line end, fields in a fixed order, undefined fields omitted.
 * It is on the hot path, so it does not use `JSON.stringify`.
 *
 * @param now wall clock, milliseconds since the epoch.
 */
export function writeAccessLine(line: LineBytes, outcome: Outcome, now: number): void {
  line.clear();
  line.plain('{"time":"');
  line.time(now);
  line.plain('","level":"');
  line.plain(accessLevel(outcome));
  line.plain('","msg":"request","id":');
  line.integer(outcome.id);
  line.plain(',"request_id":');
  line.quoted(outcome.requestId);
  line.plain(',"client":');
  line.quoted(outcome.client);
  line.plain(',"method":');
  line.quoted(outcome.method);
  line.plain(',"host":');
  line.quoted(outcome.host);
  line.plain(',"path":');
  line.quoted(maskTokens(outcome.path));
  line.plain(',"route":');
  line.quoted(outcome.route);
  optional(line, ',"upstream":', outcome.upstream);
  optional(line, ',"target":', outcome.target);
  line.plain(',"status":');
  line.integer(outcome.status);
  optional(line, ',"source":', outcome.source);
  optional(line, ',"auth":', outcome.auth);
  optional(line, ',"reason":', outcome.reason);
  optional(line, ',"subject":', outcome.subject);
  line.plain(',"bytes_in":');
  line.integer(outcome.bytesIn);
  line.plain(',"bytes_out":');
  line.integer(outcome.bytesOut);
  line.plain(',"duration_ms":');
  line.milliseconds(outcome.durationMs);
  if (outcome.upstreamMs !== undefined) {
    line.plain(',"upstream_ms":');
    line.milliseconds(outcome.upstreamMs);
  }
  line.plain(',"protocol":');
  line.quoted(outcome.protocol);
  optional(line, ',"trace_id":', outcome.traceId);
  if (outcome.fields !== undefined) additional(line, outcome.fields);
  line.plain("}");
}

/** @param fields names and values, alternating. */
function additional(line: LineBytes, fields: readonly string[]): void {
  for (let i = 1; i < fields.length; i += 2) {
    line.plain(",");
    line.quoted(fields[i - 1] ?? "");
    line.plain(":");
    line.quoted(fields[i] ?? "");
  }
}

function optional(line: LineBytes, name: string, value: string | undefined): void {
  if (value === undefined) return;
  line.plain(name);
  line.quoted(value);
}

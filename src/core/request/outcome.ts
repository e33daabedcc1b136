import type { IncomingHttpHeaders } from "node:http";
import { COUNTED_ERRORS } from "./errors.ts";
import type { Identity } from "./identity.ts";
import { TOKEN_REFUSAL_REASONS } from "./token-verifier.ts";

/** The `reason` of `auth_decisions_total`. The last four occur only with `would_deny`. */
export const AUTH_REASONS = [
  "ok",
  "missing",
  "multiple",
  "forbidden",
  "network_denied",
  "cross_site",
  ...TOKEN_REFUSAL_REASONS,
  "rate_limited",
  "concurrency_limited",
  "keys_unusable",
  "authorization_unavailable",
] as const;
export type AuthReason = (typeof AUTH_REASONS)[number];
export const isAuthReason = oneOf(AUTH_REASONS);

export type AuthResult = "allowed" | "denied" | "skipped" | "would_deny";

/** The `result` of `logins_total`. */
export const LOGIN_RESULTS = [
  "success",
  "bad_credentials",
  "throttled",
  "queue_full",
  "unavailable",
  "malformed",
  "error",
] as const;
export type LoginResult = (typeof LOGIN_RESULTS)[number];

/** The `result` of `user_store_requests_total`. */
export const STORE_RESULTS = ["found", "wrong", "unknown", "unavailable", "error"] as const;
export type StoreResult = (typeof STORE_RESULTS)[number];

/** The `reason` of `upstream_errors_total`. */
export const UPSTREAM_ERROR_REASONS = [
  "connect_refused",
  "connect_timeout",
  "response_timeout",
  "idle_timeout",
  "reset",
  "tls",
  "dns",
  "aborted",
  "invalid_response",
  "resource_exhausted",
] as const;
export type UpstreamErrorReason = (typeof UPSTREAM_ERROR_REASONS)[number];
export const isUpstreamErrorReason = oneOf(UPSTREAM_ERROR_REASONS);

/** The `reason` of `requests_rejected_total`: connections and requests that were refused or cut off. */
export const REFUSAL_REASONS = [
  ...COUNTED_ERRORS,
  "connections",
  "connections_per_address",
  "pipelined",
  "http2_flood",
  "buffered_bytes",
  "tls_handshake",
  "proxy_protocol",
  "stalled",
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];
export const isRefusalReason = oneOf(REFUSAL_REASONS);

/** Why a running request or WebSocket is ended: the `reason` of `streams_ended_total`, and of the log line. */
export const STREAM_ENDS = ["token_expired", "revoked", "no_longer_allowed"] as const;
export type StreamEnd = (typeof STREAM_ENDS)[number];

/** The record of one finished request: one access line and one observation of the metrics. */
export interface Outcome {
  readonly id: number;
  readonly requestId: string;
  readonly client: string;
  readonly method: string;
  readonly host: string;
  /** Without the query. */
  readonly path: string;
  /**
   * The name of the route, or that of an endpoint of Sallyport's own, such as `authenticate`; `none` if neither
   * matched.
   */
  readonly route: string;
  readonly upstream: string | undefined;
  readonly target: string | undefined;
  /** The status sent to the client; 499 if the client disconnected first. */
  readonly status: number;
  readonly source: "self" | "upstream" | "decision";
  readonly auth: AuthResult | undefined;
  /** The auth reason, or the reason of the error that ended the request. */
  readonly reason: string | undefined;
  readonly subject: string | undefined;
  /** Body bytes received from and sent to the client. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** The time from the request's head to the end of the response, in milliseconds. */
  readonly durationMs: number;
  /** The time from dispatch to the first byte of the backend's response, in milliseconds. */
  readonly upstreamMs: number | undefined;
  /** `HTTP/1.1`, `HTTP/1.0`, `HTTP/2.0` or `websocket`. */
  readonly protocol: string;
  /** 32 hexadecimal digits; left out if tracing is off. */
  readonly traceId?: string;
  /** The fields that `log.fields` adds to the access line, names and values alternating. */
  readonly fields?: readonly string[] | undefined;
}

/** The source of the additional fields of an access line. */
export interface LoggedRequest {
  /** As the client sent them. */
  readonly headers: IncomingHttpHeaders;
  /** The verified caller. */
  readonly identity: Identity | undefined;
  /** Whether the client's connection has TLS, and its version, such as `TLSv1.3`. */
  readonly secure: boolean;
  readonly tlsVersion: string | undefined;
  /** How often the request was sent to a backend; 0 if it was not. */
  readonly attempts: number;
  /** The status for the log. */
  readonly status: number;
}

/**
 * Returns the additional fields of one access line, names and values alternating. Values are truncated, secrets are
 * masked. Returns undefined if no line will be written.
 */
export type AccessFields = (request: LoggedRequest) => readonly string[] | undefined;

/** Returns a type guard for the words of a closed set. */
function oneOf<Word extends string>(
  words: readonly Word[],
): (word: string | undefined) => word is Word {
  const set: ReadonlySet<string | undefined> = new Set(words);
  return (word): word is Word => set.has(word);
}

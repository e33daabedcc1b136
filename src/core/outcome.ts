import { TOKEN_REFUSALS } from "./token-verifier.ts";

/** The reason words of `auth_decisions_total`. */
export const AUTH_REASONS = ["ok", "missing", "multiple", "forbidden", ...TOKEN_REFUSALS] as const;
export type AuthReason = (typeof AUTH_REASONS)[number];

export type AuthResult = "allowed" | "denied" | "skipped" | "would_deny";

/** The `result` of `logins_total`. */
export const LOGIN_RESULTS = [
  "success",
  "bad_credentials",
  "throttled",
  "queue_full",
  "malformed",
  "error",
] as const;
export type LoginResult = (typeof LOGIN_RESULTS)[number];

/** The `reason` of `upstream_errors_total`. */
export const UPSTREAM_ERROR_REASONS = [
  "connect_refused",
  "connect_timeout",
  "response_timeout",
  "reset",
  "tls",
  "dns",
  "aborted",
  "invalid_response",
] as const;
export type UpstreamErrorReason = (typeof UPSTREAM_ERROR_REASONS)[number];

/** The `reason` of `requests_rejected_total`: requests that never became a `GateRequest`, or were cut off. */
export const REJECTIONS = [
  "bad_request",
  "header_too_large",
  "request_timeout",
  "body_too_large",
  "expectation_failed",
  "rate_limited",
  "upstream_busy",
  "connections",
  "connections_per_address",
  "pipelined",
  "tls_handshake",
] as const;
export type Rejection = (typeof REJECTIONS)[number];

/** All that is told of one finished request: one log line, one metrics observation. */
export interface Outcome {
  readonly id: number;
  readonly requestId: string;
  readonly client: string;
  readonly method: string;
  readonly host: string;
  /** Without the query. */
  readonly path: string;
  /** Name of the route, `authenticate` or `version` for our own endpoints, `none` where none was found. */
  readonly route: string;
  readonly upstream: string | undefined;
  readonly target: string | undefined;
  /** What the client got; 499 when it left before. */
  readonly status: number;
  readonly source: "self" | "upstream";
  readonly auth: AuthResult | undefined;
  /** The auth reason, or the reason word of the error that ended the request. */
  readonly reason: string | undefined;
  readonly subject: string | undefined;
  /** Body bytes received from and sent to the client. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** From the request's head until the answer was handed over, in milliseconds. */
  readonly durationMs: number;
  /** From dispatch until the first byte of the backend's answer, in milliseconds. */
  readonly upstreamMs: number | undefined;
  /** `HTTP/1.1`, `HTTP/1.0` or `websocket`. */
  readonly protocol: string;
  /** 32 hexadecimal digits; left out where tracing is off. */
  readonly traceId?: string;
}

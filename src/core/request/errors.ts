/**
 * The table of all error responses of Sallyport itself. `server/request/write-answer.ts` turns a row into a response.
 */
import type { AuthReason, UpstreamErrorReason } from "./outcome.ts";

/** An error as a client sees it. `close` ends the connection, because its further content cannot be trusted. */
interface ErrorRow {
  readonly status: number;
  readonly message: string;
  readonly close?: true;
  /** The `error` parameter of `Proxy-Status` (RFC 9209 §2.3) for errors about the backend. */
  readonly proxyStatus?: string;
  /** The `error` parameter of `WWW-Authenticate` (RFC 6750 §3.1). */
  readonly bearerError?: "invalid_token" | "insufficient_scope";
  readonly challenge?: true;
  /** Whether it refuses the caller, so that it counts as a denial. */
  readonly deniesCaller?: true;
}

const UNAUTHENTICATED = {
  status: 401,
  message: "Full authentication is required to access this resource",
  challenge: true,
  deniesCaller: true,
} as const;
const DENIED = {
  status: 403,
  message: "Access to this resource is not allowed",
  deniesCaller: true,
} as const;
const UNREACHABLE = {
  status: 502,
  message: "The service behind this address cannot be reached",
} as const;
const SILENT = { status: 504, message: "The service behind this address does not answer" } as const;

export const ERRORS = {
  // Authentication and authorization.
  unauthenticated: UNAUTHENTICATED,
  invalid_token: { ...UNAUTHENTICATED, bearerError: "invalid_token" },
  // A client shows another certificate only on another connection.
  invalid_certificate: { ...UNAUTHENTICATED, close: true },
  forbidden: { ...DENIED, challenge: true, bearerError: "insufficient_scope" },
  network_denied: DENIED,
  keys_unusable: { status: 503, message: "Authentication is not possible at the moment" },
  authorization_unavailable: {
    status: 503,
    message: "Authorization is not possible at the moment",
  },

  // Login.
  bad_credentials: { status: 401, message: "Invalid username or password" },
  login_malformed: { status: 400, message: "The request body is not valid" },
  login_media_type: { status: 415, message: "The request body must be application/json" },
  login_too_large: { status: 413, message: "The request body is too large", close: true },
  login_proof: { status: 400, message: "The DPoP proof is not valid" },
  login_throttled: { status: 429, message: "Too many login attempts, try again later" },
  users_unavailable: { status: 503, message: "Logging in is not possible at the moment" },
  login_queue_full: { status: 503, message: "Too many logins at the moment, try again later" },
  sign_in_failed: { status: 400, message: "This sign-in cannot be completed: begin it again" },
  provider_unavailable: { status: 503, message: "The sign-in provider does not answer, try again" },

  // The request itself.
  bad_request: { status: 400, message: "The request is not valid", close: true },
  plain_http: { status: 400, message: "This port speaks HTTPS: use https://", close: true },
  upgrade_unsupported: {
    status: 400,
    message: "Only WebSocket upgrades are supported",
    close: true,
  },
  protocol_unsupported: { status: 501, message: "Only WebSockets can be opened here" },
  cross_site: {
    status: 403,
    message: "This request comes from another site",
    deniesCaller: true,
  },
  origin_not_allowed: { status: 403, message: "This origin is not allowed" },
  no_route: { status: 404, message: "There is nothing at this address" },
  method_not_allowed: { status: 405, message: "This method is not allowed here" },
  rate_limited: { status: 429, message: "Too many requests, try again later" },
  concurrency_limited: { status: 429, message: "Too many requests at once, try again later" },
  request_timeout: { status: 408, message: "The request took too long to arrive", close: true },
  deadline_exceeded: { status: 408, message: "The deadline of this call has passed" },
  body_too_large: { status: 413, message: "The request body is too large", close: true },
  expectation_failed: { status: 417, message: "The expectation cannot be met", close: true },
  underscore_header: {
    status: 400,
    message: "Header names with an underscore are not allowed here",
    close: true,
  },
  header_too_large: { status: 431, message: "The request header is too large", close: true },

  // The backend.
  connect_refused: { ...UNREACHABLE, proxyStatus: "connection_refused" },
  dns: { ...UNREACHABLE, proxyStatus: "dns_error" },
  tls: { ...UNREACHABLE, proxyStatus: "tls_protocol_error" },
  reset: {
    status: 502,
    message: "The service behind this address broke the connection",
    proxyStatus: "connection_terminated",
  },
  invalid_response: {
    status: 502,
    message: "The service behind this address gave an answer that is not valid",
    proxyStatus: "http_protocol_error",
  },
  connect_timeout: { ...SILENT, proxyStatus: "connection_timeout" },
  response_timeout: { ...SILENT, proxyStatus: "http_response_timeout" },
  upstream_busy: {
    status: 503,
    message: "The service behind this address is too busy",
    proxyStatus: "connection_limit_reached",
  },
  resource_exhausted: {
    status: 503,
    message: "The proxy has no connection left, try again",
    proxyStatus: "proxy_internal_error",
  },
  loop_detected: {
    status: 508,
    message: "This request has come back to the proxy",
    proxyStatus: "proxy_loop_detected",
  },
  version_unavailable: { status: 503, message: "The version is not known at the moment" },

  // Everything else.
  drain_timeout: { status: 503, message: "The proxy is stopping, try again", close: true },
  internal: { status: 500, message: "Something went wrong inside the proxy", close: true },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

/** The errors that count as refusals in `requests_rejected_total`. */
export const COUNTED_ERRORS = [
  "bad_request",
  "underscore_header",
  "header_too_large",
  "request_timeout",
  "body_too_large",
  "expectation_failed",
  "rate_limited",
  "concurrency_limited",
  "upstream_busy",
  "keys_unusable",
  "authorization_unavailable",
  "plain_http",
  "drain_timeout",
] as const satisfies readonly ErrorCode[];

/** Returns the row of a code, with its optional columns typed. */
export function errorRow(code: ErrorCode): ErrorRow {
  return ERRORS[code];
}

/** The specific cause of an error, for the log and the metrics. */
export type Reason =
  | ErrorCode
  | AuthReason
  | UpstreamErrorReason
  | `ambiguous_${Ambiguity}`
  | ParserReason
  | (
      | "login"
      | "login_misspelt"
      | "decisions_only"
      | "not_json"
      | "not_utf8"
      | "hashing"
      | "queue_full"
    )
  | ("throttled" | `throttled_${"address" | "account" | "global"}`)
  | `version_${"malformed" | "unreadable" | "unreachable"}`
  | ("upstream_queue_timeout" | "slow_client" | "client_gone")
  | (
      | "session_too_large"
      | `sign_in_${"host" | "state" | "denied" | "invalid" | "claims" | "refused"}`
    )
  | ("no_upstream" | "not_monitored" | "explained_only");

/** The parts of a request head that two readers could interpret differently. */
export type Ambiguity = "version" | "host" | "target" | "path" | "header" | "framing" | "length";

/** The reasons for which Node's parser refuses a request. */
export type ParserReason =
  | `invalid_${"method" | "target" | "version" | "header" | "line_end" | "length"}`
  | `invalid_${"transfer_encoding" | "chunk"}`
  | ("incomplete" | "after_close");

interface ErrorDetails {
  /** Replaces the message of the row. A fixed text, never a value from the client. */
  readonly message?: string;
  /** In seconds, for `Retry-After`. */
  readonly retryAfter?: number | undefined;
  /** The allowed methods, for `Allow`. */
  readonly allow?: string;
  /** Sufficient scopes, separated by spaces, for the challenge (RFC 6750 §3). */
  readonly scope?: string | undefined;
  /**
   * What was wrong with the token, for the challenge (RFC 6750 §3). A fixed text, and only if the configuration
   * enables it.
   */
  readonly description?: string | undefined;
  /** What was wrong with the proof, for the DPoP challenge: a nonce was missing, or anything else. */
  readonly dpop?: { readonly nonce: string } | "invalid" | undefined;
  /** The cause, for the log and the metrics only; never sent to the client. By default the code. */
  readonly reason?: Reason | undefined;
  readonly cause?: unknown;
  /** The measured size and the limit that it exceeds, for `explain`. */
  readonly exceeded?: string;
}

/** The error type of the request path: a row of the table and the details of one occurrence. */
export class GateError extends Error {
  readonly code: ErrorCode;
  readonly retryAfter: number | undefined;
  readonly allow: string | undefined;
  readonly scope: string | undefined;
  readonly description: string | undefined;
  readonly dpop: ErrorDetails["dpop"];
  readonly reason: Reason;
  readonly exceeded: string | undefined;

  constructor(code: ErrorCode, details: ErrorDetails = {}) {
    const { stackTraceLimit } = Error;
    // Refusals are normal responses. Nobody reads their stack trace, whose creation takes 2.7 of their 3.0 µs.
    if (code !== "internal") Error.stackTraceLimit = 0;
    super(
      details.message ?? ERRORS[code].message,
      details.cause === undefined ? undefined : { cause: details.cause },
    );
    Error.stackTraceLimit = stackTraceLimit;
    this.name = "GateError";
    this.code = code;
    this.retryAfter = details.retryAfter;
    this.allow = details.allow;
    this.scope = details.scope;
    this.description = details.description;
    this.dpop = details.dpop;
    this.reason = details.reason ?? code;
    this.exceeded = details.exceeded;
  }
}

/**
 * The table of everything that Sallyport answers itself when it does not forward.
 * `core/errors.ts` names the cases, `server/answer.ts` is the one place that writes them to a socket.
 */

/** What one error looks like to a client. `close` ends the connection: what follows on it cannot be trusted. */
interface ErrorRow {
  readonly status: number;
  readonly message: string;
  readonly close?: true;
  /** The `error` parameter of `Proxy-Status` (RFC 9209 §2.3) for errors about the backend. */
  readonly proxyStatus?: string;
  /** The `error` parameter of `WWW-Authenticate` (RFC 6750 §3.1). */
  readonly bearerError?: "invalid_token" | "insufficient_scope";
  readonly challenge?: true;
}

const AUTHENTICATION_REQUIRED = "Full authentication is required to access this resource";

export const ERRORS = {
  // Who is asking.
  unauthenticated: { status: 401, message: AUTHENTICATION_REQUIRED, challenge: true },
  invalid_token: {
    status: 401,
    message: AUTHENTICATION_REQUIRED,
    challenge: true,
    bearerError: "invalid_token",
  },
  forbidden: {
    status: 403,
    message: "Access to this resource is not allowed",
    challenge: true,
    bearerError: "insufficient_scope",
  },
  keys_unusable: { status: 503, message: "Authentication is not possible at the moment" },

  // Logging in.
  bad_credentials: { status: 401, message: "Invalid username or password" },
  login_malformed: { status: 400, message: "The request body is not valid" },
  login_media_type: { status: 415, message: "The request body must be application/json" },
  login_too_large: { status: 413, message: "The request body is too large", close: true },
  login_throttled: { status: 429, message: "Too many login attempts, try again later" },
  login_queue_full: { status: 503, message: "Too many logins at the moment, try again later" },

  // The request itself.
  bad_request: { status: 400, message: "The request is not valid", close: true },
  upgrade_unsupported: {
    status: 400,
    message: "Only WebSocket upgrades are supported",
    close: true,
  },
  no_route: { status: 404, message: "There is nothing at this address" },
  method_not_allowed: { status: 405, message: "This method is not allowed here" },
  rate_limited: { status: 429, message: "Too many requests, try again later" },
  request_timeout: { status: 408, message: "The request took too long to arrive", close: true },
  body_too_large: { status: 413, message: "The request body is too large", close: true },
  expectation_failed: { status: 417, message: "The expectation cannot be met", close: true },
  header_too_large: { status: 431, message: "The request header is too large", close: true },

  // The backend.
  connect_refused: {
    status: 502,
    message: "The service behind this address cannot be reached",
    proxyStatus: "connection_refused",
  },
  dns: {
    status: 502,
    message: "The service behind this address cannot be reached",
    proxyStatus: "dns_error",
  },
  tls: {
    status: 502,
    message: "The service behind this address cannot be reached",
    proxyStatus: "tls_protocol_error",
  },
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
  connect_timeout: {
    status: 504,
    message: "The service behind this address does not answer",
    proxyStatus: "connection_timeout",
  },
  response_timeout: {
    status: 504,
    message: "The service behind this address does not answer",
    proxyStatus: "http_response_timeout",
  },
  upstream_busy: {
    status: 503,
    message: "The service behind this address is too busy",
    proxyStatus: "connection_limit_reached",
  },
  version_unavailable: { status: 503, message: "The version is not known at the moment" },

  // Everything else.
  internal: { status: 500, message: "Something went wrong inside the proxy", close: true },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

/** How the row of a code reads, with the optional columns typed. */
export function errorRow(code: ErrorCode): ErrorRow {
  return ERRORS[code];
}

export interface ErrorDetails {
  /** Replaces the row's message. A fixed text of ours, never a value from the client. */
  readonly message?: string;
  /** Seconds, becomes `Retry-After`. */
  readonly retryAfter?: number;
  /** The methods that are allowed, becomes `Allow`. */
  readonly allow?: string;
  /** Why, for the log and the metrics alone; never told to the client. A word from a closed set. */
  readonly reason?: string;
  readonly cause?: unknown;
}

/** The one error type of the request path: a row of the table, and what this occurrence adds to it. */
export class GateError extends Error {
  readonly code: ErrorCode;
  readonly retryAfter: number | undefined;
  readonly allow: string | undefined;
  readonly reason: string | undefined;

  constructor(code: ErrorCode, details: ErrorDetails = {}) {
    const { stackTraceLimit } = Error;
    // Refusals are answers, not faults: nobody reads where they were made, and the stack is 2.7 of their 3.0 µs.
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
    this.reason = details.reason;
  }
}

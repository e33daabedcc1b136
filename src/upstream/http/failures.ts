import { GateError } from "../../core/request/errors.ts";
import { isUpstreamErrorReason, type UpstreamErrorReason } from "../../core/request/outcome.ts";
import { systemCode } from "../../lib/text/error-code.ts";

/**
 * The faults of backends and clients that Sallyport finds: the reason that is counted, and words for the log. Without a reason, nobody
 * at the backend is at fault.
 */
const FAULTS = {
  connection_lost: ["reset", "the backend closed the connection"],
  stream_reset: ["reset", "the backend ended the stream"],
  /** It was not processed, so any method may be sent again (RFC 9113 §8.7): the backend closes the connection. */
  unprocessed: ["reset", "the backend has not processed the request"],
  /** Likewise, but the backend refused only this request. */
  refused: ["reset", "the backend has not processed the request"],
  unexpected_bytes: ["invalid_response", "the backend sent data that no request asked for"],
  invalid_status: ["invalid_response", "the backend answered with an invalid status"],
  invalid_answer: ["invalid_response", "the answer of the backend is not valid HTTP"],
  invalid_http2: ["invalid_response", "the backend breaks HTTP/2"],
  /** By ALPN. */
  chose_http2: ["invalid_response", "the backend chose HTTP/2"],
  no_http2: ["invalid_response", "the backend does not speak HTTP/2"],
  connect_timeout: ["connect_timeout", "the backend did not answer in time"],
  response_timeout: ["response_timeout", "the backend did not answer in time"],
  idle_timeout: ["idle_timeout", "the backend did not answer in time"],
  /** No byte of the request was written. */
  unsendable: [undefined, "the request to the backend is not valid HTTP"],
  client_gone: ["aborted", "the client is gone"],
  handshake_aborted: ["aborted", "the client left during the handshake"],
  /** The response was discarded. */
  repeated: ["invalid_response", "the request is sent again"],
} as const satisfies Readonly<
  Record<string, readonly [reason: UpstreamErrorReason | undefined, words: string]>
>;

/** Why a request to a backend ends early. */
export class BackendFault extends Error {
  readonly kind: keyof typeof FAULTS;
  /** Undefined if the request could not be sent. */
  readonly reason: UpstreamErrorReason | undefined;

  constructor(kind: keyof typeof FAULTS, detail?: string) {
    const [reason, words] = FAULTS[kind];
    super(detail === undefined ? words : `${words}: ${detail}`);
    this.name = "BackendFault";
    this.kind = kind;
    this.reason = reason;
  }
}

/** Converts anything that a handler threw to an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error("a handler failed", { cause: thrown });
}

/** Failures before anything of the request was sent: no connection opens, whatever the request. */
export const NOT_CONNECTED: ReadonlySet<UpstreamErrorReason> = new Set([
  "connect_refused",
  "connect_timeout",
  "dns",
  "tls",
]);

const BY_CODE: Readonly<Record<string, UpstreamErrorReason>> = {
  ECONNREFUSED: "connect_refused",
  EHOSTUNREACH: "connect_refused",
  ENETUNREACH: "connect_refused",
  EHOSTDOWN: "connect_refused",
  ENOENT: "connect_refused",
  EACCES: "connect_refused",
  ENOTFOUND: "dns",
  EAI_AGAIN: "dns",
  EAI_FAIL: "dns",
  ECONNRESET: "reset",
  EPIPE: "reset",
  ECONNABORTED: "reset",
  ETIMEDOUT: "connect_timeout",
  // This process or its machine has run out of open files, memory for sockets, or local ports.
  EMFILE: "resource_exhausted",
  ENFILE: "resource_exhausted",
  ENOBUFS: "resource_exhausted",
  ENOMEM: "resource_exhausted",
  EADDRNOTAVAIL: "resource_exhausted",
};

/** Returns the reason for an error of a connection to a backend. */
export function failureReason(error: unknown): UpstreamErrorReason {
  if (!(error instanceof Error)) return "invalid_response";
  if (error instanceof BackendFault) return error.reason ?? "invalid_response";
  const code = systemCode(error) ?? "";
  const known = BY_CODE[code];
  if (known !== undefined) return known;
  if (isTls(code)) return "tls";
  // `autoSelectFamily` tries each address of a name and collects the errors (Node's `net.connect`).
  if (error instanceof AggregateError) return failureReason(error.errors[0]);
  return "invalid_response";
}

/** Matches the codes of verification errors of OpenSSL and Node. */
function isTls(code: string): boolean {
  return (
    code.startsWith("ERR_TLS") ||
    code.startsWith("ERR_SSL") ||
    code === "EPROTO" ||
    /CERT|ISSUER|SIGNATURE|CRL|SELF_SIGNED/.test(code)
  );
}

/** The errors for reasons without a row in the table: the client has left, or already has the head of the answer. */
const REPORTED_AS = { aborted: "reset", idle_timeout: "response_timeout" } as const;

/** Returns the table's error for whatever ended a request to a backend: its body, its fields, or the backend. */
export function failureOf(error: unknown): GateError {
  if (error instanceof GateError) return error;
  if (error instanceof BackendFault && error.kind === "unsendable") {
    return new GateError("bad_request", { cause: error });
  }
  return failure(failureReason(error), error);
}

/** Returns the table's error for a reason. */
export function failure(reason: UpstreamErrorReason, cause: unknown): GateError {
  const code = reason === "aborted" || reason === "idle_timeout" ? REPORTED_AS[reason] : reason;
  const retryAfter = reason === "resource_exhausted" ? { retryAfter: 1 } : {};
  return new GateError(code, { reason, cause, ...retryAfter });
}

/** Returns the reason of an error about a backend; undefined for any other error. */
export function upstreamReason(error: unknown): UpstreamErrorReason | undefined {
  const reason = error instanceof GateError ? error.reason : undefined;
  return isUpstreamErrorReason(reason) ? reason : undefined;
}

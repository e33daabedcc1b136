import { GateError } from "../core/errors.ts";
import { UPSTREAM_ERROR_REASONS, type UpstreamErrorReason } from "../core/outcome.ts";

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
  UND_ERR_SOCKET: "reset",
  ETIMEDOUT: "connect_timeout",
  UND_ERR_CONNECT_TIMEOUT: "connect_timeout",
  UND_ERR_HEADERS_TIMEOUT: "response_timeout",
  UND_ERR_BODY_TIMEOUT: "response_timeout",
  UND_ERR_HEADERS_OVERFLOW: "invalid_response",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "invalid_response",
  UND_ERR_RES_EXCEEDED_MAX_SIZE: "invalid_response",
  UND_ERR_ABORTED: "aborted",
};

/** undici says "other side closed" and "bad response" with one code: the second is a backend that breaks the protocol. */
const BROKEN_PROTOCOL = new Set(["bad response", "bad upgrade"]);

/** The reason word for an error of a connection to a backend. */
export function failureReason(error: unknown): UpstreamErrorReason {
  if (!(error instanceof Error)) return "invalid_response";
  if (BROKEN_PROTOCOL.has(error.message)) return "invalid_response";
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  const known = BY_CODE[code];
  if (known !== undefined) return known;
  if (isTls(code)) return "tls";
  // `autoSelectFamily` tries each address of a name and gathers the failures (Node's `net.connect`).
  if (error instanceof AggregateError) return failureReason(error.errors[0]);
  return "invalid_response";
}

/** Names of OpenSSL's and Node's verification errors. */
function isTls(code: string): boolean {
  return (
    code.startsWith("ERR_TLS") ||
    code.startsWith("ERR_SSL") ||
    code === "EPROTO" ||
    /CERT|ISSUER|SIGNATURE|CRL|SELF_SIGNED/.test(code)
  );
}

/** undici refused to send the request: something that it carries is not valid HTTP. */
export function isUnsendable(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "UND_ERR_INVALID_ARG";
}

/** The reasons that have a row of their own in the error table; a client that left has none. */
export function failure(reason: UpstreamErrorReason, cause: unknown): GateError {
  return new GateError(reason === "aborted" ? "reset" : reason, { reason, cause });
}

/** The reason word that an error about a backend was made from; undefined for an error about something else. */
export function upstreamReason(error: GateError): UpstreamErrorReason | undefined {
  const { reason } = error;
  return UPSTREAM_ERROR_REASONS.find((word) => word === reason);
}

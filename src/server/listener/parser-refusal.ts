import type { ErrorCode, ParserReason, Reason } from "../../core/request/errors.ts";

/** The error with which Node's parser or timeouts refuse a request. */
export interface ParserError {
  readonly code?: string | undefined;
  /** The data of the read, and how much of it was parsed. */
  readonly rawPacket?: unknown;
  readonly bytesParsed?: unknown;
}

const CODES: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: "header_too_large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "body_too_large",
  ERR_HTTP_REQUEST_TIMEOUT: "request_timeout",
};

/** The reason for a 400, by the error code of llhttp (include/llhttp.h). */
const REASONS: Readonly<Record<string, ParserReason>> = {
  HPE_INVALID_METHOD: "invalid_method",
  HPE_INVALID_URL: "invalid_target",
  HPE_INVALID_VERSION: "invalid_version",
  HPE_INVALID_CONSTANT: "invalid_version",
  HPE_PAUSED_H2_UPGRADE: "invalid_version",
  HPE_INVALID_HEADER_TOKEN: "invalid_header",
  HPE_UNEXPECTED_SPACE: "invalid_header",
  HPE_LF_EXPECTED: "invalid_line_end",
  HPE_CR_EXPECTED: "invalid_line_end",
  HPE_STRICT: "invalid_line_end",
  HPE_INVALID_CONTENT_LENGTH: "invalid_length",
  HPE_UNEXPECTED_CONTENT_LENGTH: "invalid_length",
  HPE_INVALID_TRANSFER_ENCODING: "invalid_transfer_encoding",
  HPE_INVALID_CHUNK_SIZE: "invalid_chunk",
  HPE_INVALID_EOF_STATE: "incomplete",
  HPE_CLOSED_CONNECTION: "after_close",
};

/** Returns the code of the error response for a parser error. */
export function parserErrorCode({ code = "" }: ParserError): ErrorCode {
  return CODES[code] ?? "bad_request";
}

/** Returns the reason for the log, from a closed set. */
export function parserReason(error: ParserError): Reason {
  const code = parserErrorCode(error);
  return code === "bad_request" ? (REASONS[error.code ?? ""] ?? code) : code;
}

/** A request line: the method, and the target up to the query. What a lookahead has matched is not tried again in part. */
const REQUEST_LINE = /^([!#$%&'*+.^_`|~\w-]{1,32}) (?=(\/[^?# ]{0,1024}))[^\r\n]* HTTP\/\d\.\d$/;
const END_OF_HEAD = "\r\n\r\n";
/** Where the search for the end of a request line stops, in bytes. */
const LINE_BYTES = 16 * 1024;

/**
 * Returns the method and path of a refused request if they are certain, otherwise empty strings. Uses only a complete
 * request line at the start of a read: anything else could be part of a header field, or of another request.
 */
export function refusedRequestLine({ rawPacket, bytesParsed }: ParserError): {
  method: string;
  path: string;
} {
  const nothing = { method: "", path: "" };
  if (!Buffer.isBuffer(rawPacket)) return nothing;
  const whole = rawPacket.indexOf(END_OF_HEAD);
  // The first request was parsed completely, so the error concerns another one.
  if (whole !== -1 && typeof bytesParsed === "number" && bytesParsed > whole) return nothing;
  const end = rawPacket.subarray(0, LINE_BYTES).indexOf("\r\n");
  const line = end === -1 ? "" : rawPacket.toString("latin1", 0, end);
  const [, method = "", path = ""] = REQUEST_LINE.exec(line) ?? [];
  return { method, path };
}

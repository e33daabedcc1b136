import type { Duplex } from "node:stream";
import type { Socket } from "node:net";
import { type ErrorCode, GateError, type ParserReason } from "../../core/request/errors.ts";
import { destroyUnlessRead, type TrackedOutgoing } from "../../core/request/http-message.ts";
import { isRefusalReason } from "../../core/request/outcome.ts";
import { errorAnswer, forGrpc, writeAnswer } from "../request/write-answer.ts";
import { lingeringClose } from "./discard-body.ts";
import { requestIdOf } from "../request/intake.ts";
import { currentResponse, type TrackedResponse } from "../request/tracked-response.ts";
import type { Answer } from "../request/gate.ts";
import type { ListenOptions } from "./listen-options.ts";
import { STATUS_CODES } from "../../lib/http/node-http.ts";
import { transportOf } from "../../lib/node-internals/node-sockets.ts";
import { outcomeOfRefusal } from "../request/request-context.ts";

/** The errors of OpenSSL for a first record that looks like an HTTP request, to a server or to a proxy. */
const HTTP_IN_THE_CLEAR = ["ERR_SSL_HTTP_REQUEST", "ERR_SSL_HTTPS_PROXY_REQUEST"];

type SocketRefusal = Pick<ListenOptions, "nextId" | "rules" | "observer">;

/** The known properties of a request that could not be parsed. */
interface RequestLine {
  readonly method: string;
  readonly path: string;
}

const UNKNOWN: RequestLine = { method: "", path: "" };

/** Answers data that never became a request, logs it, and closes the connection. */
function refuseSocket(
  error: GateError,
  socket: Duplex,
  options: SocketRefusal,
  { method, path }: RequestLine = UNKNOWN,
): void {
  const { observer, rules } = options;
  observer.requestStarted();
  const id = options.nextId();
  const requestId = requestIdOf(undefined, id);
  const answer = errorAnswer(error, id, requestId, rules.current);
  const { status } = answer;
  const { reason } = error;
  // Before the end of the connection, after which its properties are unknown.
  const outcome = outcomeOfRefusal({ id, requestId, method, path, status, reason }, socket);
  socket.write(asText(answer));
  lingeringClose(socket);
  observer.requestFinished(outcome);
}

/**
 * Answers plain HTTP on the TLS port in plain HTTP, as nginx (497) and Go do. Must be called when Node reports the failed
 * handshake, when the TCP connection below is still writable.
 *
 * @returns whether plain HTTP was the cause.
 */
export function refusePlainHttp(
  error: NodeJS.ErrnoException,
  socket: Socket,
  options: SocketRefusal,
): boolean {
  if (!HTTP_IN_THE_CLEAR.includes(error.code ?? "")) return false;
  const below = transportOf(socket);
  if (below?.writable !== true) return false;
  options.observer.requestRefused("plain_http");
  refuseSocket(new GateError("plain_http"), below, options);
  return true;
}

function asText({ status, headers, body }: Answer): string {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`];
  for (let i = 0; i + 1 < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`);
  return `${lines.join("\r\n")}\r\n\r\n${String(body)}`;
}

/** The error with which Node's parser or timeouts refuse a request. */
interface ParserError {
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

/** Returns the error for what Node's parser or timeouts refuse, with a reason from a closed set. */
export function parserRefusal(cause: ParserError): GateError {
  const { code = "" } = cause;
  return new GateError(CODES[code] ?? "bad_request", { cause, reason: REASONS[code] });
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
function refusedRequestLine({ rawPacket, bytesParsed }: ParserError): RequestLine {
  if (!Buffer.isBuffer(rawPacket)) return UNKNOWN;
  const whole = rawPacket.indexOf(END_OF_HEAD);
  // The first request was parsed completely, so the error concerns another one.
  if (whole !== -1 && typeof bytesParsed === "number" && bytesParsed > whole) return UNKNOWN;
  const end = rawPacket.subarray(0, LINE_BYTES).indexOf("\r\n");
  const line = end === -1 ? "" : rawPacket.toString("latin1", 0, end);
  const [, method = "", path = ""] = REQUEST_LINE.exec(line) ?? [];
  return { method, path };
}

/**
 * Creates the handler for requests that Node's parser or timeouts refuse. They get the error envelope, too: as the
 * response to the current request, or on its own if no request has begun. A partly written response can only be aborted,
 * unless the error concerns data after its request: then the response is finished before the connection closes.
 */
export function createClientErrorHandler(
  options: SocketRefusal,
): (error: ParserError, socket: Duplex) => void {
  /** Connections that close after their pending responses. */
  const ending = new WeakSet<Duplex>();
  return (error, socket) => {
    if (socket.writableEnded) {
      lingeringClose(socket);
      return;
    }
    const response = currentResponse(socket);
    if (error.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    const refusal = parserRefusal(error);
    const { code } = refusal;
    if (response?.req.complete === true) {
      // The current request is complete, so its response is still due; the error concerns what follows it.
      if (ending.has(socket)) return;
      ending.add(socket);
      if (isRefusalReason(code)) options.observer.requestRefused(code);
      afterPendingResponses(socket, (unfinished) => {
        if (unfinished !== undefined) endUnfinished(unfinished, socket, refusal);
        else if (error.code === "HPE_CLOSED_CONNECTION" || !socket.writable) lingeringClose(socket);
        else refuseSocket(refusal, socket, options, refusedRequestLine(error));
      });
      return;
    }
    const answers = response?.whole !== true && response?.headersSent !== true;
    if (answers && isRefusalReason(code)) options.observer.requestRefused(code);
    if (response === undefined) {
      refuseSocket(refusal, socket, options, refusedRequestLine(error));
    } else endUnfinished(response, socket, refusal);
  };

  /** Ends a request of which nothing more will arrive. */
  function endUnfinished(response: TrackedResponse, socket: Duplex, refusal: GateError): void {
    if (response.whole) lingeringClose(socket);
    else if (response.headersSent) socket.destroy();
    else interrupt(refusal, response, options.rules.current.realm);
  }
}

/** Calls `next` after the responses to all complete requests, in order, with that to the request in which the error lies. */
function afterPendingResponses(
  socket: Duplex,
  next: (unfinished: TrackedResponse | undefined) => void,
): void {
  const response = currentResponse(socket);
  if (response?.req.complete !== true) next(response);
  else response.once("close", () => afterPendingResponses(socket, next));
}

/** Ends the current request, and responds to it in place of its handler. */
export function interrupt(error: GateError, response: TrackedOutgoing, realm: string): void {
  const requestId = requestIdOf(response.req.headers["x-request-id"], response.id);
  const refusal = errorAnswer(error, response.id, requestId, {
    realm,
    resourceMetadata: response.transfer?.resourceMetadata,
    byCertificate: response.permit?.route.auth === "certificate",
  });
  const answer = response.transfer?.question?.no(refusal) ?? forGrpc(refusal, error, response.req);
  response.interruption ??= error.reason;
  response.transfer?.exchange?.cancel();
  response.whole = true;
  writeAnswer(answer, response);
  destroyUnlessRead(response);
}

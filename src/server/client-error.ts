import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Answer } from "../core/answer.ts";
import { type ErrorCode, GateError } from "../core/errors.ts";
import type { Observer } from "../core/observer.ts";
import { REJECTIONS } from "../core/outcome.ts";
import { plainAddress } from "../lib/networks.ts";
import { STATUS_CODES } from "../lib/node-http.ts";
import { errorAnswer } from "./answer.ts";
import { endGently } from "./end-gently.ts";
import { requestIdOf } from "./intake.ts";
import { TrackedResponse } from "./tracked-response.ts";

export interface ClientErrorOptions {
  readonly nextId: () => number;
  readonly realm: () => string;
  readonly observer: Pick<Observer, "rejected" | "requestStarted" | "requestFinished">;
}

const CODES: Readonly<Record<string, ErrorCode>> = {
  HPE_HEADER_OVERFLOW: "header_too_large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "body_too_large",
  ERR_HTTP_REQUEST_TIMEOUT: "request_timeout",
};

/**
 * What Node's parser or its clock refuses gets the envelope, too: as the answer of the request under way, or by itself when
 * no request has begun. An answer that is half written already can only be cut off, unless what is wrong came behind its
 * request: then it goes out, and the connection ends behind it.
 */
export function createClientErrorHandler(
  options: ClientErrorOptions,
): (error: NodeJS.ErrnoException, socket: Duplex) => void {
  /** Connections that end behind the answers that are under way. */
  const ending = new WeakSet<Duplex>();
  return (error, socket) => {
    if (socket.writableEnded) {
      endGently(socket);
      return;
    }
    const response = responseUnderWay(socket);
    if (error.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    const code = CODES[error.code ?? ""] ?? "bad_request";
    const rejection = REJECTIONS.find((word) => word === code);
    if (response?.req.complete === true) {
      // The request was whole: what is wrong came behind it, and its answer is owed.
      if (ending.has(socket)) return;
      ending.add(socket);
      if (rejection !== undefined) options.observer.rejected(rejection);
      behindAnswers(socket, () => {
        if (error.code === "HPE_CLOSED_CONNECTION" || !socket.writable) endGently(socket);
        else refuseSocket(new GateError(code), socket, options);
      });
      return;
    }
    if (response?.whole === true) {
      endGently(socket);
      return;
    }
    if (response?.headersSent === true) {
      socket.destroy();
      return;
    }
    if (rejection !== undefined) options.observer.rejected(rejection);
    if (response === undefined) refuseSocket(new GateError(code), socket, options);
    else interrupt(new GateError(code), response, options.realm());
  };
}

/** Calls `next` when the answers to what was whole have gone out, in their order. */
function behindAnswers(socket: Duplex, next: () => void): void {
  const response = responseUnderWay(socket);
  if (response === undefined) next();
  else response.once("close", () => behindAnswers(socket, next));
}

/** Node keeps the response that a socket is writing under this name; its own default handler looks there as well. */
export function responseUnderWay(socket: Duplex): TrackedResponse | undefined {
  const response: unknown = "_httpMessage" in socket ? socket._httpMessage : undefined;
  return response instanceof TrackedResponse ? response : undefined;
}

function interrupt(error: GateError, response: TrackedResponse, realm: string): void {
  const requestId = requestIdOf(response.req.headers["x-request-id"], response.id);
  const answer = errorAnswer(error, response.id, requestId, realm);
  response.interruption = error.code;
  response.whole = true;
  response.writeHead(answer.status, [...answer.headers]);
  response.end(answer.body);
}

function refuseSocket(error: GateError, socket: Duplex, options: ClientErrorOptions): void {
  const { observer, realm } = options;
  observer.requestStarted();
  const id = options.nextId();
  const requestId = requestIdOf(undefined, id);
  const answer = errorAnswer(error, id, requestId, realm());
  socket.write(asText(answer));
  endGently(socket);
  observer.requestFinished({
    id,
    requestId,
    client: plainAddress(socket instanceof Socket ? (socket.remoteAddress ?? "") : ""),
    method: "",
    host: "",
    path: "",
    route: "none",
    upstream: undefined,
    target: undefined,
    status: answer.status,
    source: "self",
    auth: undefined,
    reason: error.code,
    subject: undefined,
    bytesIn: 0,
    bytesOut: 0,
    durationMs: 0,
    upstreamMs: undefined,
    protocol: "HTTP/1.1",
  });
}

function asText({ status, headers, body }: Answer): string {
  const lines = [`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`];
  for (let i = 0; i + 1 < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`);
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

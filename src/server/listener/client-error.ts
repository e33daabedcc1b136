import type { Duplex } from "node:stream";
import { GateError } from "../../core/request/errors.ts";
import { destroyUnlessRead, type TrackedOutgoing } from "../../core/request/http-message.ts";
import { isRefusalReason } from "../../core/request/outcome.ts";
import { errorAnswer, fieldsOf, forGrpc } from "../request/write-answer.ts";
import { lingeringClose } from "./discard-body.ts";
import { requestIdOf } from "../request/intake.ts";
import {
  type ParserError,
  parserErrorCode,
  parserReason,
  refusedRequestLine,
} from "./parser-refusal.ts";
import { refuseSocket, type SocketRefusal } from "./refuse-socket.ts";
import { currentResponse, type TrackedResponse } from "../request/tracked-response.ts";

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
    const code = parserErrorCode(error);
    const refusal = (): GateError => new GateError(code, { reason: parserReason(error) });
    if (response?.req.complete === true) {
      // The current request is complete, so its response is still due; the error concerns what follows it.
      if (ending.has(socket)) return;
      ending.add(socket);
      if (isRefusalReason(code)) options.observer.requestRefused(code);
      afterPendingResponses(socket, (unfinished) => {
        if (unfinished !== undefined) endUnfinished(unfinished, socket, refusal);
        else if (error.code === "HPE_CLOSED_CONNECTION" || !socket.writable) lingeringClose(socket);
        else refuseSocket(refusal(), socket, options, refusedRequestLine(error));
      });
      return;
    }
    const answers = response?.whole !== true && response?.headersSent !== true;
    if (answers && isRefusalReason(code)) options.observer.requestRefused(code);
    if (response === undefined) {
      refuseSocket(refusal(), socket, options, refusedRequestLine(error));
    } else endUnfinished(response, socket, refusal);
  };

  /** Ends a request of which nothing more will arrive. */
  function endUnfinished(
    response: TrackedResponse,
    socket: Duplex,
    refusal: () => GateError,
  ): void {
    if (response.whole) lingeringClose(socket);
    else if (response.headersSent) socket.destroy();
    else interrupt(refusal(), response, options.rules.current.realm);
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
  const refusal = errorAnswer(error, response.id, requestId, realm);
  const answer = forGrpc(refusal, error, response.req);
  response.interruption ??= error.reason ?? error.code;
  response.transfer?.exchange?.cancel();
  response.whole = true;
  response.writeHead(answer.status, fieldsOf(answer, response));
  response.end(answer.body);
  destroyUnlessRead(response);
  if (answer.logged !== undefined) response.statusCode = answer.logged;
}

import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { GateError } from "../../core/request/errors.ts";
import { currentResponse } from "../request/current-responses.ts";
import { cut } from "../request/cut-request.ts";
import { SERVED_METHODS } from "../request/intake.ts";
import { TrackedResponse } from "../request/tracked-response.ts";
import { createClientErrorHandler } from "./client-error.ts";
import { lingeringClose } from "./lingering-close.ts";
import type { ListenOptions } from "./listen-options.ts";
import { serializePipelined } from "./pipelining.ts";
import { refusePlainHttp } from "./refuse-socket.ts";

/** Passes the server's events about requests to the pipeline. */
export function attachHandlers(server: Server, options: ListenOptions): void {
  const { pipeline, observer, reading } = options;
  const take = serializePipelined(
    (request, response) => void pipeline.handle(request, response),
    () => observer.requestRefused("pipelined"),
    options.buffered,
  );
  const handle: typeof take = (request, response) => {
    reading.charge(request.socket);
    take(request, response);
  };
  server.on("request", handle);
  // The pipeline sends 100 Continue once the backend wants the body.
  server.on("checkContinue", handle);
  server.on("checkExpectation", (request: IncomingMessage, response: TrackedResponse) => {
    if (request.socket.writableEnded) return;
    pipeline.refuse(request, response, new GateError("expectation_failed"));
  });
  server.on("upgrade", (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    reading.chargeUpgrade(request.socket);
    const response = detachedResponse(request, stream);
    if (response === undefined) return;
    void pipeline.handleUpgrade(request, response, { head, stream: undefined });
  });
  server.on("connect", (request: IncomingMessage, stream: Duplex) => {
    const response = detachedResponse(request, stream);
    if (response === undefined) return;
    pipeline.refuse(
      request,
      response,
      new GateError("method_not_allowed", { allow: SERVED_METHODS }),
    );
  });
  server.on("clientError", createClientErrorHandler(options));
  server.on("tlsClientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (!refusePlainHttp(error, socket, options)) observer.requestRefused("tls_handshake");
  });
  server.on("timeout", (socket: Socket) => {
    if (currentResponse(socket) !== undefined) observer.requestRefused("stalled");
    cut(socket, "stalled");
  });
}

/**
 * Creates a response on a socket that Node has detached; the connection closes after it. For a request with a body,
 * Node 26 passes a stream other than the socket, which ends and fails together with it. Such a request is refused, also
 * on the socket.
 *
 * @returns undefined if the connection is already closing, or if an earlier response is still pending: the client
 * sent the request without knowing that response. It is ignored, and the connection closes after the earlier
 * response.
 */
function detachedResponse(request: IncomingMessage, stream: Duplex): TrackedResponse | undefined {
  const { socket } = request;
  socket.on("error", () => socket.destroy());
  stream.on("error", () => socket.destroy());
  if (socket.writableEnded) {
    lingeringClose(socket);
    return undefined;
  }
  const before = currentResponse(socket);
  if (before !== undefined) {
    before.once("close", () => lingeringClose(socket));
    return undefined;
  }
  const response = new TrackedResponse(request);
  response.shouldKeepAlive = false;
  response.detached = true;
  response.assignSocket(socket);
  socket.on("drain", () => response.emit("drain"));
  response.once("finish", () => lingeringClose(socket));
  return response;
}

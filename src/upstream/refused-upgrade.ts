import type { IncomingMessage } from "node:http";
import type { HandshakePlace } from "./handshake-place.ts";
import { incomingHeaders } from "./incoming-headers.ts";
import type { Carriage } from "./websocket.ts";

/**
 * Passes on what a backend answers that is no WebSocket endpoint or does not want this client. Resolves with its status when
 * the client has all of it or is gone. No byte of the body in either direction for `timeouts.idle` ends both connections.
 *
 * @param place is given back as soon as all of it has arrived.
 */
export function passRefusal(
  carriage: Carriage,
  message: IncomingMessage,
  place: HandshakePlace,
): Promise<number> {
  const { response, permit, transfer, upstream } = carriage;
  const { statusCode: status = 502, statusMessage, headers } = message;
  const { promise, resolve } = Promise.withResolvers<number>();
  const end = (): void => void response.destroy();
  const idle = setTimeout(end, upstream.options.timeouts.idle);
  response.writeHead(status, statusMessage, [
    ...incomingHeaders(headers, permit.request.requestId, status),
    ...["Connection", "close"],
  ]);
  message.pipe(response);
  // Behind the pipe: what it has just written may wait for the client.
  message.on("data", (chunk: Buffer) => {
    transfer.bytesOut += chunk.length;
    idle.refresh();
    if (response.writableNeedDrain) place.held();
  });
  message.on("error", end).on("aborted", end);
  message.on("end", () => place.release());
  response.on("drain", () => place.flows());
  response.once("close", () => {
    clearTimeout(idle);
    message.destroy();
    resolve(status);
  });
  return promise;
}

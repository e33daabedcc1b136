import type { IncomingMessage } from "node:http";
import { incomingHeaders } from "./incoming-headers.ts";
import type { Carriage } from "./websocket.ts";

/**
 * Passes on what a backend answers that is no WebSocket endpoint or does not want this client. Resolves with its status when
 * the client has all of it or is gone. No byte of the body in either direction for `timeouts.idle` ends both connections.
 */
export function passRefusal(carriage: Carriage, message: IncomingMessage): Promise<number> {
  const { response, permit, transfer, upstream } = carriage;
  const status = message.statusCode ?? 502;
  const { promise, resolve } = Promise.withResolvers<number>();
  const end = (): void => void response.destroy();
  const idle = setTimeout(end, upstream.options.timeouts.idle);
  response.writeHead(status, message.statusMessage, [
    ...incomingHeaders(message.headers, permit.request.requestId, status),
    ...["Connection", "close"],
  ]);
  message.on("data", (chunk: Buffer) => {
    transfer.bytesOut += chunk.length;
    idle.refresh();
  });
  message.on("error", end).on("aborted", end);
  response.once("close", () => {
    clearTimeout(idle);
    message.destroy();
    resolve(status);
  });
  message.pipe(response);
  return promise;
}

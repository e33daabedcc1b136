import type { IncomingMessage } from "node:http";
import { clientFields, mayEndWithTrailers } from "../headers/incoming-headers.ts";
import type { Slot } from "../pool/slot.ts";
import type { UpgradeContext } from "../http/permitted-request.ts";

/**
 * Forwards the response of a backend that refuses the upgrade. Resolves with its status when the client has received
 * it or is gone. Closes both connections if no byte of the body moves in either direction for `timeouts.idle`.
 *
 * @param slot released as soon as the response has arrived.
 * @param backendIdle called if the backend stopped sending.
 */
export function forwardRefusal(
  context: UpgradeContext,
  message: IncomingMessage,
  slot: Slot,
  backendIdle: () => void,
): Promise<number> {
  const { response, permit, transfer, upstream } = context;
  const { statusCode: status = 502, statusMessage = "", headers } = message;
  const { promise, resolve } = Promise.withResolvers<number>();
  const end = (): void => void response.destroy();
  const idle = setTimeout(() => {
    transfer.abortReason = response.writableNeedDrain ? "slow_client" : "idle_timeout";
    if (!response.writableNeedDrain) backendIdle();
    end();
  }, permit.route.timeouts?.idle ?? upstream.options.timeouts.idle);
  if (!mayEndWithTrailers(response, status)) delete headers["trailer"];
  response.writeHead(status, statusMessage, [
    ...clientFields(headers, permit, status, slot.target?.origin, transfer.cors?.backend),
    ...["Connection", "close"],
  ]);
  message.on("data", (chunk: Buffer) => {
    if (!response.write(chunk)) message.pause();
    transfer.bytesOut += chunk.length;
    idle.refresh();
    if (response.writableNeedDrain) slot.readStalled(transfer.bytesOut);
  });
  message.on("error", end).on("aborted", end);
  message.on("end", () => {
    slot.release();
    response.end();
  });
  response.on("drain", () => {
    slot.readResumed();
    message.resume();
  });
  response.once("close", () => {
    clearTimeout(idle);
    message.destroy();
    resolve(status);
  });
  return promise;
}

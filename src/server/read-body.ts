import type { IncomingMessage, ServerResponse } from "node:http";
import { GateError } from "../core/errors.ts";

/**
 * Reads a body whole.
 *
 * @param response closes when the client left or was told 408; a request whose response is out does not close any more.
 * @param limit the most bytes that it may have.
 * @throws GateError `login_too_large` beyond the limit, `bad_request` when the client leaves before the end.
 */
export function readBody(
  incoming: IncomingMessage,
  response: ServerResponse,
  limit: number,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  const onData = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes > limit) finish(new GateError("login_too_large"));
    else chunks.push(chunk);
  };
  const onEnd = (): void => finish(undefined);
  const onClose = (): void => finish(new GateError("bad_request", { reason: "client_gone" }));
  function finish(error: GateError | undefined): void {
    incoming.off("data", onData).off("end", onEnd);
    response.off("close", onClose);
    if (error === undefined) resolve(Buffer.concat(chunks, bytes));
    else reject(error);
  }
  incoming.on("data", onData).once("end", onEnd);
  response.once("close", onClose);
  if (incoming.readableEnded) onEnd();
  else if (incoming.destroyed || response.destroyed) onClose();
  return promise;
}

import { type ErrorCode, GateError } from "../../core/request/errors.ts";
import type { EndpointCall } from "./gate.ts";

/**
 * Reads the complete body of a request that Sallyport answers itself.
 *
 * @param call its `response` closes if the client leaves or gets a 408: the request itself does not close once its response was
 * sent. Its `transfer` reports the bytes buffered until the body is complete.
 * @param limit maximum size in bytes, beyond which the error is `tooLarge`.
 * @throws GateError `tooLarge`, or `bad_request` if the client leaves before the end.
 */
export function readBody(
  { incoming, response, transfer }: Pick<EndpointCall, "incoming" | "response" | "transfer">,
  limit: number,
  tooLarge: ErrorCode,
): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const chunks: Buffer[] = [];
  let bytes = 0;
  transfer.holder = {
    get bufferedBytes() {
      return bytes;
    },
  };
  const onData = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes > limit) finish(new GateError(tooLarge));
    else chunks.push(chunk);
  };
  const onEnd = (): void => finish(undefined);
  const onClose = (): void => finish(new GateError("bad_request", { reason: "client_gone" }));
  function finish(error: GateError | undefined): void {
    incoming.off("data", onData).off("end", onEnd);
    response.off("close", onClose);
    transfer.holder = undefined;
    transfer.bytesIn = bytes;
    if (error === undefined) resolve(Buffer.concat(chunks, bytes));
    else reject(error);
  }
  incoming.on("data", onData).once("end", onEnd);
  response.once("close", onClose);
  if (incoming.readableEnded) onEnd();
  else if (incoming.destroyed || response.destroyed) onClose();
  return promise;
}

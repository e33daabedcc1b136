import type { IncomingMessage, ServerResponse } from "node:http";

/** A body up to this many bytes is taken whole before the backend is asked. */
const SMALL_BODY_BYTES = 16 * 1024;

/**
 * Whether a body, by its length in bytes, leaves in one write with its head. As a stream it costs a POST of 4 KiB half as
 * much again; and as long as a client dribbles it, no connection to the backend waits.
 */
export function isSmallBody(length: number): boolean {
  return length > 0 && length <= SMALL_BODY_BYTES;
}

/**
 * Reads a small body, then calls `taken` with all of it, or with undefined when the client left before, or was told 408. It
 * is the response that tells: a request whose response is out does not close any more.
 */
export function takeSmallBody(
  request: IncomingMessage,
  response: ServerResponse,
  taken: (body: Buffer | undefined) => void,
): void {
  const chunks: Buffer[] = [];
  const onData = (chunk: Buffer): void => void chunks.push(chunk);
  const onEnd = (): void => finish(Buffer.concat(chunks));
  const onClose = (): void => finish(undefined);
  function finish(body: Buffer | undefined): void {
    request.off("data", onData).off("end", onEnd);
    response.off("close", onClose);
    taken(body);
  }
  request.on("data", onData).on("end", onEnd);
  response.on("close", onClose);
}

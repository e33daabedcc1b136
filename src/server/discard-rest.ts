import type { IncomingMessage } from "node:http";

/** The most that is read of a body that nobody wants. */
const DISCARDED_BYTES = 1024 * 1024;
const DISCARDING_MS = 1_000;

/** Whether a body is little enough to be read away, as far as its head tells. */
export function isDiscardable({ headers }: IncomingMessage): boolean {
  return Number(headers["content-length"] ?? 0) <= DISCARDED_BYTES;
}

/**
 * Reads the rest of a body away, so that a kept-alive connection can serve the next request.
 *
 * @returns whether all of it came; false when there was too much of it, it took too long, or the client left.
 */
export function discardRest(request: IncomingMessage): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let bytes = 0;
  const timer = setTimeout(() => finish(false), DISCARDING_MS);
  const onData = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes > DISCARDED_BYTES) finish(false);
  };
  const onEnd = (): void => finish(true);
  const onClose = (): void => finish(request.complete);
  function finish(whole: boolean): void {
    clearTimeout(timer);
    request.off("data", onData).off("end", onEnd).off("close", onClose).off("error", onClose);
    if (!whole) request.pause();
    resolve(whole);
  }
  request.on("data", onData).once("end", onEnd).once("close", onClose).once("error", onClose);
  request.resume();
  return promise;
}

/** Has the rest of a body read away, if there is one; a client that sends too much of it loses its connection. */
export function finishReading(request: IncomingMessage): void {
  if (request.complete || request.readableEnded || request.destroyed) return;
  void discardRest(request).then((whole) => {
    if (!whole) request.socket.destroySoon();
  });
}

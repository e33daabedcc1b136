import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { headerValues } from "../../lib/http/header-values.ts";
import type { IncomingRequest } from "../../core/request/http-message.ts";

/** How long a client may take to read the last response, in milliseconds. */
const LINGER_MS = 1_000;

/**
 * Closes a connection so that the client can read what was written (nginx's lingering close). Discards what the
 * client still sends: closing with unread data resets the connection and may destroy a response in transit (RFC 9112
 * §9.6).
 */
export function lingeringClose(socket: Duplex): void {
  if (!socket.writableEnded) {
    socket.end();
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  }
  socket.resume();
}

/** Makes a socket close in this way after its last response, when Node calls `destroySoon`. By default it closes at once. */
export function useLingeringClose(socket: Socket): void {
  socket.destroySoon = () => lingeringClose(socket);
}

/** Maximum bytes of an unwanted body to read. */
const MAX_DISCARDED_BYTES = 1024 * 1024;
/** How long discarding may take, in milliseconds. */
const DISCARD_TIMEOUT_MS = 1_000;

/** Whether a body is small enough to discard, judging by its Content-Length. */
export function isDiscardable({ rawHeaders }: IncomingRequest): boolean {
  return Number(headerValues(rawHeaders, "content-length")[0] ?? 0) <= MAX_DISCARDED_BYTES;
}

/** Whether a request has a body, judging by its head (RFC 9112 §6.3). Node's `headers` would cost as much as all of it. */
export function declaresBody({ rawHeaders, hasBody }: IncomingRequest): boolean {
  if (hasBody !== undefined) return hasBody;
  if (headerValues(rawHeaders, "transfer-encoding").length > 0) return true;
  return headerValues(rawHeaders, "content-length").some((length) => length !== "0");
}

/**
 * Discards the rest of a body, so that the connection can be reused for another request.
 *
 * @returns whether it ended; false if it was too large or too slow, or the client left.
 */
export function discardBody(request: IncomingRequest): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  let bytes = 0;
  const timer = setTimeout(() => finish(false), DISCARD_TIMEOUT_MS);
  const onData = (chunk: Buffer): void => {
    bytes += chunk.length;
    if (bytes > MAX_DISCARDED_BYTES) finish(false);
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

/** Ends a request whose answer was sent before all of the request arrived. */
function abandon(request: IncomingRequest): void {
  if (request.abandon === undefined) request.socket.destroySoon();
  else request.abandon();
}

/** Discards the rest of a body, if any, in the background. Closes the connection, or the stream, if the rest is too large. */
export function discardUnreadBody(request: IncomingRequest): void {
  if (request.complete || request.readableEnded || request.destroyed) return;
  // A refused tunnel has no body.
  if (request.hasBody === false) {
    abandon(request);
    return;
  }
  // It will be complete when Node has read on.
  if (!declaresBody(request)) return;
  void discardBody(request).then((whole) => {
    if (!whole) abandon(request);
  });
}

import type { Http2Session, Http2Stream, OutgoingHttpHeaders } from "node:http2";
import type { Socket } from "node:net";

/**
 * The only module that closes, resets or destroys HTTP/2 streams and sessions (`test/ground/http2-ends.test.ts`). Node emits
 * their events inside callbacks of nghttp2, and there it runs promises and `process.nextTick`, too. A stream that is reset
 * there and ended by the same read is destroyed while nghttp2 still asks for its data: an assertion in
 * `Http2Stream::OnTrailers` aborts the process (Node 26.10). An immediate runs outside these callbacks. Callers must ignore
 * the events until then.
 */

const NO_ERROR = 0;

/** Resets a stream. What has arrived can still be read if the code is NO_ERROR. */
export function resetStream(stream: Http2Stream, code: number): void {
  setImmediate(closeNow, stream, code);
}

/** Resets a stream and drops everything that was read or written. */
export function destroyStream(stream: Http2Stream, code: number): void {
  setImmediate(() => {
    closeNow(stream, code);
    stream.destroy();
  });
}

/**
 * Resets a stream without an error when everything written has been sent. Node's `close` would wait for that, too, but then
 * `destroyStream` could no longer tell the peer.
 */
export function finishStream(stream: Http2Stream): void {
  setImmediate(() => {
    if (stream.writableEnded && !stream.writableFinished) {
      stream.once("finish", () => finishStream(stream));
    } else closeNow(stream, NO_ERROR);
  });
}

/** Sends trailers when the stream wants them. Node itself leaves the callback first. @throws if they are invalid. */
export function sendTrailers(stream: Http2Stream, fields: OutgoingHttpHeaders): void {
  if (!stream.closed && !stream.destroyed) stream.sendTrailers(fields);
}

/** Closes a session after its streams. */
export function closeSession(session: Http2Session): void {
  setImmediate(() => session.close());
}

/** Ends a session, its streams and its connection. */
export function destroySession(session: Http2Session | undefined, socket: Socket): void {
  setImmediate(() => {
    session?.destroy();
    socket.destroy();
  });
}

function closeNow(stream: Http2Stream, code: number): void {
  if (!stream.closed && !stream.destroyed) stream.close(code);
}

import type { Duplex } from "node:stream";

/** How long a client may take to read the last answer, in milliseconds. */
const LINGER_MS = 1_000;

/**
 * Ends a connection so that the client can read what was written. What it still sends is read away for a while: a close
 * with unread bytes resets the connection, and takes along an answer that is on its way (RFC 9112 §9.6).
 */
export function endGently(socket: Duplex): void {
  if (!socket.writableEnded) {
    socket.end();
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  }
  socket.resume();
}

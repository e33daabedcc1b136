import type { Socket } from "node:net";
import type { Duplex } from "node:stream";

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

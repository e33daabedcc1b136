import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { TrackedResponse } from "./tracked-response.ts";

/** Begins the work on one request. */
type Begin = (request: IncomingMessage, response: TrackedResponse) => void;

/** So many requests of one connection may wait for the answers to those before them. */
const MOST_WAITING = 100;

/**
 * Has the requests of one connection begun one after the other, when the answers before theirs are out. Node hands out all
 * that arrive together at once: their answers then wait in memory for a client that need not read any of them, and of two
 * that change something the second may reach the backend first (RFC 9112 §9.3.2).
 *
 * Between two of them the loop turns, so that a long pipeline does not hold up everybody else.
 *
 * @param refused told of each connection that ends because too many wait on it.
 */
export function inTurn(begin: Begin, refused: () => void): Begin {
  const waiting = new WeakMap<Socket, number>();
  return (request, response) => {
    const { socket } = request;
    // What comes behind the last answer is read away.
    if (socket.writableEnded || socket.destroyed) return;
    if (response.socket !== null) {
      begin(request, response);
      return;
    }
    const before = waiting.get(socket) ?? 0;
    if (before === MOST_WAITING) {
      socket.destroy();
      refused();
      return;
    }
    waiting.set(socket, before + 1);
    response.onTurn = () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1);
      setImmediate(() => {
        if (!socket.writableEnded && !socket.destroyed) begin(request, response);
      });
    };
  };
}

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { TrackedResponse } from "./tracked-response.ts";

/** Begins the work on one request. */
type Begin = (request: IncomingMessage, response: TrackedResponse) => void;

/** So many requests of one connection may wait for the answers to those before them… */
const MOST_WAITING = 100;
/** …with so many names and values in their header sections together: a hundred with twenty fields each. */
const MOST_STRINGS = 4_000;

/** What waits on a connection. */
interface Waiting {
  requests: number;
  strings: number;
}

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
  const waiting = new WeakMap<Socket, Waiting>();
  return (request, response) => {
    const { socket } = request;
    // What comes behind the last answer is read away.
    if (socket.writableEnded || socket.destroyed) return;
    if (response.socket !== null) {
      begin(request, response);
      return;
    }
    const ahead = waiting.get(socket) ?? { requests: 0, strings: 0 };
    waiting.set(socket, ahead);
    const strings = request.rawHeaders.length;
    ahead.requests += 1;
    ahead.strings += strings;
    if (ahead.requests > MOST_WAITING || ahead.strings > MOST_STRINGS) {
      socket.destroy();
      refused();
      return;
    }
    response.onTurn = () => {
      ahead.requests -= 1;
      ahead.strings -= strings;
      setImmediate(() => {
        if (!socket.writableEnded && !socket.destroyed) begin(request, response);
      });
    };
  };
}

import type { Duplex } from "node:stream";
import type { TrackedOutgoing } from "../../core/request/http-message.ts";
import { responseOn } from "../../lib/node-internals/response-on-socket.ts";
import { TrackedResponse } from "./tracked-response.ts";

/** A connection that carries several requests at once. */
interface Multiplexed {
  /** Those under way. */
  readonly responses: Iterable<TrackedOutgoing>;
  /** Tells the client that the connection ends now, and which requests were processed. */
  sayGoodbye(): void;
}

const multiplexed = new WeakMap<Duplex, Multiplexed>();

const NONE: readonly TrackedOutgoing[] = [];

/** Returns the response that an HTTP/1.1 connection is writing. */
export function currentResponse(socket: Duplex): TrackedResponse | undefined {
  const response = responseOn(socket);
  return response instanceof TrackedResponse ? response : undefined;
}

/** Registers an HTTP/2 connection. */
export function trackMultiplexed(socket: Duplex, connection: Multiplexed): void {
  multiplexed.set(socket, connection);
}

/**
 * Sends GOAWAY if a connection that is about to be closed is one of HTTP/2, so that its client knows which requests it
 * may send again.
 *
 * @returns whether it did; the frame is written by the next turn of the event loop.
 */
export function sayGoodbye(socket: Duplex): boolean {
  const connection = multiplexed.get(socket);
  connection?.sayGoodbye();
  return connection !== undefined;
}

/** Returns the responses under way on a connection of either version. */
export function responsesOn(socket: Duplex): Iterable<TrackedOutgoing> {
  const response = currentResponse(socket);
  return response === undefined ? (multiplexed.get(socket)?.responses ?? NONE) : [response];
}

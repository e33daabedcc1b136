import type { Duplex } from "node:stream";
import type { TrackedOutgoing } from "../../core/request/http-message.ts";
import { TrackedResponse } from "./tracked-response.ts";

/** The responses under way on connections that carry several at once. */
const multiplexed = new WeakMap<Duplex, Iterable<TrackedOutgoing>>();

const NONE: readonly TrackedOutgoing[] = [];

/** Returns the response that an HTTP/1.1 connection is writing. Node keeps it under this name; its own default handler uses it, too. */
export function currentResponse(socket: Duplex): TrackedResponse | undefined {
  const response: unknown = "_httpMessage" in socket ? socket._httpMessage : undefined;
  return response instanceof TrackedResponse ? response : undefined;
}

/** Makes the responses of an HTTP/2 connection known. */
export function trackMultiplexed(socket: Duplex, responses: Iterable<TrackedOutgoing>): void {
  multiplexed.set(socket, responses);
}

/** Returns the responses under way on a connection of either version. */
export function responsesOn(socket: Duplex): Iterable<TrackedOutgoing> {
  const response = currentResponse(socket);
  return response === undefined ? (multiplexed.get(socket) ?? NONE) : [response];
}

import type { Server } from "node:http";
import { changeOptions } from "../../lib/node-internals/node-sockets.ts";

/** The time limits for clients, in milliseconds. */
export interface ClientTimeouts {
  /** For the head of a request. */
  readonly header: number;
  /** For the complete request, including its head. */
  readonly request: number;
  /** Between two requests. */
  readonly keepAlive: number;
}

/** How long Node keeps a connection open beyond `keepAlive`, for a request that is already in transit. */
const KEEP_ALIVE_GRACE_MS = 1_000;
/** Late connections are looked for periodically: this many times during the shortest timeout… */
const CHECKS_PER_TIMEOUT = 10;
/** …but within these bounds, in milliseconds. With the default `header` of 10 s, once a second. */
const CHECK_INTERVAL_MS = { min: 10, max: 1_000 };

/** Returns how often to look for late connections, in milliseconds. */
export function checkInterval(shortestMs: number): number {
  const { min, max } = CHECK_INTERVAL_MS;
  return Math.ceil(Math.min(Math.max(shortestMs / CHECKS_PER_TIMEOUT, min), max));
}

/**
 * Makes a server close the connections of slow clients, at most a tenth of the timeout late. May be called again
 * while it listens.
 */
export function setClientTimeouts(server: Server, timeouts: ClientTimeouts): void {
  const { header, request, keepAlive } = timeouts;
  // Node swaps the two if the first is longer.
  server.headersTimeout = Math.min(header, request);
  server.requestTimeout = request;
  server.keepAliveTimeout = keepAlive;
  server.keepAliveTimeoutBuffer = Math.min(
    KEEP_ALIVE_GRACE_MS,
    Math.ceil(keepAlive / CHECKS_PER_TIMEOUT),
  );
  changeOptions(server, { connectionsCheckingInterval: checkInterval(Math.min(header, request)) });
  // Node starts its check on this event, and restarts it when the event occurs again.
  if (server.listening) server.emit("listening");
}

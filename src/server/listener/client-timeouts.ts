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
/** Node checks for late connections periodically: this many times during the shortest timeout… */
const CHECKS_PER_TIMEOUT = 10;
/** …but within these bounds, in milliseconds. With the default `header` of 10 s, once a second. */
const CHECK_INTERVAL_MS = { min: 10, max: 1_000 };

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
  setCheckInterval(server, Math.min(header, request) / CHECKS_PER_TIMEOUT);
}

function setCheckInterval(server: Server, wantedMs: number): void {
  const { min, max } = CHECK_INTERVAL_MS;
  const connectionsCheckingInterval = Math.ceil(Math.min(Math.max(wantedMs, min), max));
  changeOptions(server, { connectionsCheckingInterval });
  // Node starts its check on this event, and restarts it when the event occurs again.
  if (server.listening) server.emit("listening");
}

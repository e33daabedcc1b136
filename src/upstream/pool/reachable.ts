import { connect } from "node:net";
import type { Clock } from "../../lib/clock.ts";
import { SingleFlight } from "../../lib/async/single-flight.ts";
import { originsOf } from "./target-list.ts";
import { originOf, type TargetOrigin } from "./target-origin.ts";
import type { UpstreamOptions } from "./upstream-options.ts";

/** The time limit for a connection, in milliseconds; a kubelet waits for a second by default. */
const CONNECT_MS = 800;
/** How long a result is cached, in milliseconds, since anyone who reaches the port may query it at any rate. */
const CACHE_MS = 1_000;

/** For each upstream `ok`, or why no target accepts a connection. */
export type Reachability = ReadonlyMap<string, string>;

/**
 * Creates a check of whether backends accept connections. It sends no request and starts no TLS handshake.
 *
 * @returns a function that resolves within a second whatever the backends do, and never rejects.
 */
export function createReachabilityCheck(
  upstreams: readonly UpstreamOptions[],
  clock: Clock,
): () => Promise<Reachability> {
  const flights = new SingleFlight<Reachability>();
  const rows = upstreams.map((upstream) => ({
    name: upstream.name,
    origins: originsOf(upstream),
  }));
  let known: Reachability = new Map();
  let until = Number.NEGATIVE_INFINITY;

  async function check(): Promise<Reachability> {
    known = new Map(
      await Promise.all(
        rows.map(async ({ name, origins }) => [name, await firstOf(origins)] as const),
      ),
    );
    until = clock.monotonic() + CACHE_MS;
    return known;
  }

  return async () => (clock.monotonic() < until ? known : flights.run("check", check));
}

/** Returns `ok`, or why the target of an address accepts no connection. Resolves within a second, never rejects. */
export function reachState(address: string): Promise<string> {
  return stateOf(originOf(address));
}

async function firstOf(origins: readonly TargetOrigin[]): Promise<string> {
  const states = await Promise.all(origins.map(stateOf));
  return states.find((state) => state === "ok") ?? states[0] ?? "no target";
}

function stateOf({ hostname, port, socketPath, lookup }: TargetOrigin): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket =
    socketPath === undefined
      ? connect({ host: hostname, port, ...(lookup === undefined ? {} : { lookup }) })
      : connect({ path: socketPath });
  const timer = setTimeout(resolve, CONNECT_MS, "no connection in time");
  socket.once("connect", () => resolve("ok"));
  socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "failed"));
  return promise.finally(() => {
    clearTimeout(timer);
    socket.destroy();
  });
}

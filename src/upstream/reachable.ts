import { connect } from "node:net";
import type { Clock } from "../lib/clock.ts";
import { SingleFlight } from "../lib/single-flight.ts";
import { originOf, type TargetOrigin } from "./target.ts";
import type { UpstreamOptions } from "./upstreams.ts";

/** How long a backend may take to accept a connection; a kubelet waits for a second by default. Milliseconds. */
const CONNECT_MS = 800;
/** How long what was found is believed, in milliseconds: whoever reaches the port may ask as often as he likes. */
const BELIEVED_MS = 1_000;

/** For each upstream `ok`, or a word on why none of its targets takes a connection. */
export type Reachability = ReadonlyMap<string, string>;

/**
 * Looks whether backends take connections, when somebody asks. No request is sent, and TLS is not begun.
 *
 * @returns what answers within a second, whatever the backends do; never rejects.
 */
export function reachabilityOf(
  upstreams: readonly UpstreamOptions[],
  clock: Clock,
): () => Promise<Reachability> {
  const flights = new SingleFlight<Reachability>();
  const rows = upstreams.map((upstream) => ({
    name: upstream.name,
    origins: upstream.targets.map((address) => originOf(address)),
  }));
  let known: Reachability = new Map();
  let until = Number.NEGATIVE_INFINITY;

  async function look(): Promise<Reachability> {
    known = new Map(
      await Promise.all(
        rows.map(async ({ name, origins }) => [name, await firstOf(origins)] as const),
      ),
    );
    until = clock.monotonic() + BELIEVED_MS;
    return known;
  }

  return async () => (clock.monotonic() < until ? known : flights.run("look", look));
}

async function firstOf(origins: readonly TargetOrigin[]): Promise<string> {
  const states = await Promise.all(origins.map(stateOf));
  return states.find((state) => state === "ok") ?? states[0] ?? "no target";
}

function stateOf({ hostname, port, socketPath }: TargetOrigin): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket =
    socketPath === undefined ? connect({ host: hostname, port }) : connect({ path: socketPath });
  const timer = setTimeout(resolve, CONNECT_MS, "no connection in time");
  socket.once("connect", () => resolve("ok"));
  socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "failed"));
  return promise.finally(() => {
    clearTimeout(timer);
    socket.destroy();
  });
}

import type { OpenUserStore } from "../credentials/stores/user-store.ts";
import { SingleFlight } from "../lib/async/single-flight.ts";
import { withTimeout } from "../lib/async/with-timeout.ts";
import type { Clock } from "../lib/clock.ts";
import { LATE } from "../lib/text/remote-error.ts";
import type { ReadinessCheck } from "../server/admin/probe-pages.ts";

/** The timeout of a check, in milliseconds. By default, the kubelet waits for a second. */
const EXAMINE_MS = 800;
/** How long a result is cached, in milliseconds: anyone who can reach the port may request it at any rate. */
const CACHE_MS = 1_000;

/** A user store and its name in metrics. */
export interface NamedStore {
  readonly name: string;
  readonly store: Pick<OpenUserStore, "examine">;
}

/**
 * Creates a check of whether user stores on other machines are available.
 * @returns a function that resolves within a second, whatever the stores do, and never rejects; undefined if all
 * stores are local.
 */
export function createStoreCheck(
  stores: () => readonly NamedStore[],
  clock: Clock,
): () => Promise<ReadinessCheck | undefined> {
  const flights = new SingleFlight<ReadinessCheck | undefined>();
  let known: ReadinessCheck | undefined;
  let until = Number.NEGATIVE_INFINITY;

  async function check(): Promise<ReadinessCheck | undefined> {
    const examined = stores().flatMap(
      ({ name, store }) => store.examine?.(EXAMINE_MS).then(named(name)) ?? [],
    );
    known = checkOf(await Promise.all(examined));
    until = clock.monotonic() + CACHE_MS;
    return known;
  }

  return async () =>
    clock.monotonic() < until ? known : withTimeout(flights.run("check", check), 1_000, TIMED_OUT);
}

const TIMED_OUT: ReadinessCheck = { name: "users", passed: false, state: LATE };

interface StoreState {
  readonly name: string;
  readonly problem: string | undefined;
}

function named(name: string): (problem: string | undefined) => StoreState {
  return (problem) => ({ name, problem });
}

function checkOf(states: readonly StoreState[]): ReadinessCheck | undefined {
  if (states.length === 0) return undefined;
  return {
    name: "users",
    passed: states.every(({ problem }) => problem === undefined),
    state: states.map(({ name, problem }) => `${name} ${problem ?? "ok"}`).join(", "),
  };
}

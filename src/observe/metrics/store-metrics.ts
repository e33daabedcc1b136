import { Gauge } from "prom-client";
import type { Observer } from "../../core/observer.ts";
import { STORE_RESULTS } from "../../core/request/outcome.ts";
import { type DefineMetric, increment, slotCounter, slotsOf } from "./counters.ts";
import { LatencyHistogram, LOGIN_BUCKETS } from "./latency-histogram.ts";

/** The state of a user store. A value is undefined if it does not apply to the store. */
export interface StoreState {
  readonly connections: number | undefined;
  /** Users with an outdated password hash. */
  readonly outdated: number | undefined;
}

/** Metrics of the user stores. An unknown store is not counted. */
export interface StoreMetrics extends Pick<Observer, "storeAnswered" | "outdatedHashUsed"> {
  /** Adds stores of a new configuration. */
  addStores(names: readonly string[]): void;
}

export function storeMetrics(
  define: DefineMetric,
  configured: readonly string[],
  stateOf: (store: string) => StoreState,
): StoreMetrics {
  const slots = slotsOf(configured);
  const known = new Map(slots);
  const columns = slotsOf(STORE_RESULTS);
  const rows = configured.map((store) => ({ store }));
  const answers = slotCounter(
    define("user_store_requests_total", "Password checks by a user store.", "store", "result"),
    byResult(rows),
  );
  const durations = new LatencyHistogram(
    define("user_store_request_duration_seconds", "Duration of these checks.", "store"),
    LOGIN_BUCKETS,
    rows,
  );
  const outdated = slotCounter(
    define("logins_with_outdated_hash_total", "Logins by an outdated password hash.", "store"),
    rows,
  );
  showStates(define, known, stateOf);
  return {
    addStores(names) {
      const more = names.filter((name) => !known.has(name)).map((store) => ({ store }));
      for (const { store } of more) known.set(store, known.size);
      answers.add(byResult(more));
      durations.add(more);
      outdated.add(more);
    },
    storeAnswered(store, result, seconds) {
      const row = known.get(store);
      const column = columns.get(result);
      if (row === undefined || column === undefined) return;
      increment(answers.counts, row * STORE_RESULTS.length + column);
      durations.record(row, seconds);
    },
    outdatedHashUsed(store) {
      increment(outdated.counts, known.get(store));
    },
  };
}

function byResult(stores: readonly { readonly store: string }[]) {
  return stores.flatMap((labels) => STORE_RESULTS.map((result) => ({ ...labels, result })));
}

/** Registers gauges that are read on a scrape. */
function showStates(
  define: DefineMetric,
  stores: ReadonlyMap<string, number>,
  stateOf: (store: string) => StoreState,
): void {
  const show = (name: string, help: string, part: keyof StoreState): void => {
    const { registry, ...head } = define(name, help, "store");
    new Gauge({
      ...head,
      registers: [registry],
      collect() {
        this.reset();
        for (const store of stores.keys()) {
          const value = stateOf(store)[part];
          if (value !== undefined) this.set({ store }, value);
        }
      },
    });
  };
  show("user_store_connections", "Open connections to a user store.", "connections");
  show("users_with_outdated_hash", "Users with an outdated password hash.", "outdated");
}

import { type SharedCounts, type Slots, ThreadCounts } from "../../lib/async/shared-counts.ts";

/** Counts requests in flight by name, over all threads of the process. */
export interface InFlight {
  /** Counts one more request. @returns the new count. */
  add(name: string): number;
  remove(name: string): void;
  count(name: string): number;
}

/** Creates the counts of a process with one thread. Names without requests take no memory. */
export function countInFlight(): InFlight {
  const counts = new Map<string, number>();
  return {
    add(name) {
      const count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count);
      return count;
    },
    remove(name) {
      const count = (counts.get(name) ?? 1) - 1;
      if (count > 0) counts.set(name, count);
      else counts.delete(name);
    },
    count: (name) => counts.get(name) ?? 0,
  };
}

/**
 * The table size for a process with several threads. Four rows take 1 MiB of address space per thread; unused pages
 * take no memory. With 1,000 requests in flight, one name in twenty million is counted too high; with 10,000, one in
 * two thousand.
 */
export const IN_FLIGHT_TABLE = { rows: 4, slots: 2 ** 16 };

/** Attaches a thread to the shared counts. */
export function attachInFlight(shared: SharedCounts, thread: number): InFlight {
  const counts = new ThreadCounts(shared, thread);
  /** The requests of this thread, so that a name is digested only once. */
  const own = new Map<string, { readonly slots: Slots; requests: number }>();
  return {
    add(name) {
      let held = own.get(name);
      if (held === undefined) own.set(name, (held = { slots: counts.slotsOf(name), requests: 0 }));
      held.requests += 1;
      counts.change(held.slots, 1);
      return counts.countAt(held.slots);
    },
    remove(name) {
      const held = own.get(name);
      if (held === undefined) return;
      counts.change(held.slots, -1);
      held.requests -= 1;
      if (held.requests === 0) own.delete(name);
    },
    count: (name) => counts.countAt(own.get(name)?.slots ?? counts.slotsOf(name)),
  };
}

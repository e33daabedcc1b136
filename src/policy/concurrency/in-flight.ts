import { type SharedCounts, type Slots, ThreadCounts } from "../../lib/async/shared-counts.ts";

/** Counts requests in flight by name, in all threads of the process. */
export interface InFlight {
  /** Counts one more. @returns how many there are now. */
  add(name: string): number;
  remove(name: string): void;
  count(name: string): number;
}

/** Names without requests take no memory, so there are never more than requests in flight. */
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
 * Of a process with several threads; four rows take 1 MiB per thread, of which pages that are never used take none. With
 * 1,000 requests in flight, one name in twenty million is counted too high; with 10,000, one in two thousand.
 */
export const IN_FLIGHT_TABLE = { rows: 4, slots: 2 ** 16 };

/** The counts of one thread, which adds up those of all. */
export function attachInFlight(shared: SharedCounts, thread: number): InFlight {
  const counts = new ThreadCounts(shared, thread);
  /** What this thread has in flight: a name is digested once. */
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

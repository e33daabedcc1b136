import { type SharedCounts, ThreadCounts } from "../../lib/async/shared-counts.ts";

export interface ConnectionLimits {
  /** The maximum number of open connections. */
  readonly total: number;
  /** The maximum for one client. */
  readonly perClient: number;
}

/** The limit that one more connection would exceed. */
export type ExceededLimit = keyof ConnectionLimits;

/** Counts the open connections of this process, in total and by client. */
export interface ConnectionCounts {
  /**
   * Counts a new connection, unless that would exceed a limit.
   *
   * @param client the client to charge; undefined to count towards the total only.
   * @returns a function to call when the connection closes, or the exceeded limit.
   */
  take(client: string | undefined, limits: ConnectionLimits): (() => void) | ExceededLimit;
}

/** Creates the counts of a process in which only one thread accepts connections. */
export function createLocalCounts(): ConnectionCounts {
  const open = new Map<string, number>();
  let all = 0;
  return {
    take(client, { total, perClient }) {
      if (all >= total) return "total";
      if (client === undefined) {
        all += 1;
        return () => (all -= 1);
      }
      const count = open.get(client) ?? 0;
      if (count >= perClient) return "perClient";
      open.set(client, count + 1);
      all += 1;
      return () => {
        all -= 1;
        const left = (open.get(client) ?? 1) - 1;
        if (left === 0) open.delete(client);
        else open.set(client, left);
      };
    },
  };
}

/** The size of the table that counts connections by client if there are several threads; two rows take 128 KiB per thread. */
export const CONNECTION_TABLE = { rows: 2, slots: 2 ** 14 };

/** Returns the counts for one thread, which counts its own connections and enforces the limits on the sum of all. */
export function attachSharedCounts(shared: SharedCounts, thread: number): ConnectionCounts {
  const counts = new ThreadCounts(shared, thread);
  return {
    take(client, { total, perClient }) {
      const slots = counts.slotsOf(client);
      counts.change(slots, 1);
      const all = counts.total();
      const tooMany = client !== undefined && counts.countAt(slots) > perClient;
      if (all <= total && !tooMany) return () => counts.change(slots, -1);
      counts.change(slots, -1);
      return all > total ? "total" : "perClient";
    },
  };
}

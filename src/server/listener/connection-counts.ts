import { type SharedCounts, ThreadCounts } from "../../lib/async/shared-counts.ts";

/** The maximum number of open connections, in total and of one client. */
export interface ConnectionLimits {
  readonly connections: number;
  readonly connectionsPerAddress: number;
}

/** The limit that one more connection would exceed. */
export type ExceededLimit = "connections" | "connections_per_address";

/** The size of the table that counts connections by client if there are several threads; two rows take 128 KiB per thread. */
export const CONNECTION_TABLE = { rows: 2, slots: 2 ** 14 };

/** Counts the open connections of one thread, and enforces the limits on the sum of all threads. */
export class ConnectionCounts {
  readonly #counts: ThreadCounts;

  constructor(shared: SharedCounts, thread: number) {
    this.#counts = new ThreadCounts(shared, thread);
  }

  /**
   * Counts a new connection, unless that would exceed a limit.
   *
   * @param client the client to charge; undefined to count towards the total only.
   * @returns a function to call when the connection closes, or the exceeded limit.
   */
  take(
    client: string | undefined,
    { connections, connectionsPerAddress }: ConnectionLimits,
  ): (() => void) | ExceededLimit {
    const counts = this.#counts;
    const slots = counts.slotsOf(client);
    counts.change(slots, 1);
    const all = counts.total();
    const tooMany = client !== undefined && counts.countAt(slots) > connectionsPerAddress;
    if (all <= connections && !tooMany) return () => counts.change(slots, -1);
    counts.change(slots, -1);
    return all > connections ? "connections" : "connections_per_address";
  }
}

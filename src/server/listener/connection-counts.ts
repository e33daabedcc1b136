import { createHmac, randomBytes } from "node:crypto";

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

/** Creates the counts of a process in which one thread accepts. */
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

/**
 * Connection counts shared by the threads of a process. Each thread writes its own table and reads all of them: the
 * counts of a thread disappear with its table, and no thread waits for another.
 *
 * In each table a client has a slot in each of two rows, chosen by a keyed hash; its count is the smaller of the two
 * sums (a count-min sketch: Cormode, Muthukrishnan 2005). So memory is fixed whatever clients connect, and nothing
 * needs cleaning. Two clients are confused only if they share both slots: a client is never undercounted, and nobody
 * can choose whom to collide with, since the key is random.
 */
export interface SharedCounts {
  readonly memory: SharedArrayBuffer;
  readonly key: Uint8Array;
}

/** Slots per row. Two rows take 128 KiB per thread. */
const SLOTS = 2 ** 14;
/** The total precedes the rows. */
const TABLE = 1 + 2 * SLOTS;

export function createSharedCounts(threads: number): SharedCounts {
  const bytes = threads * TABLE * Int32Array.BYTES_PER_ELEMENT;
  return { memory: new SharedArrayBuffer(bytes), key: randomBytes(32) };
}

function tableOf({ memory }: SharedCounts, thread: number): Int32Array<SharedArrayBuffer> {
  return new Int32Array(memory, thread * TABLE * Int32Array.BYTES_PER_ELEMENT, TABLE);
}

/** Clears the counts of a thread that has ended. */
export function releaseThread(shared: SharedCounts, thread: number): void {
  tableOf(shared, thread).fill(0);
}

/** Returns the counts for one thread: it counts its own connections and enforces the limits on the sum. */
export function attachSharedCounts(shared: SharedCounts, thread: number): ConnectionCounts {
  const threads = shared.memory.byteLength / (TABLE * Int32Array.BYTES_PER_ELEMENT);
  const tables = Array.from({ length: threads }, (_, each) => tableOf(shared, each));
  const own = tableOf(shared, thread);

  function sum(slot: number): number {
    let all = 0;
    for (const table of tables) all += Atomics.load(table, slot);
    return all;
  }

  /** Returns the slots of a connection, first that of the total. */
  function slotsOf(client: string | undefined): readonly number[] {
    if (client === undefined) return [0];
    const hash = createHmac("sha256", shared.key).update(client).digest();
    return [0, 1 + (hash.readUInt32LE(0) % SLOTS), 1 + SLOTS + (hash.readUInt32LE(4) % SLOTS)];
  }

  return {
    take(client, { total, perClient }) {
      const slots = slotsOf(client);
      const change = (by: 1 | -1): void => {
        for (const slot of slots) Atomics.add(own, slot, by);
      };
      // Count first, then check: of two threads that do so at once, the later one sees both.
      change(1);
      const [all = 0, ...rows] = slots.map(sum);
      const tooMany = rows.length > 0 && Math.min(...rows) > perClient;
      if (all <= total && !tooMany) return () => change(-1);
      change(-1);
      return all > total ? "total" : "perClient";
    },
  };
}

import type { SharedByteCounters } from "../../lib/async/shared-byte-counters.ts";

/**
 * Beyond this fraction of the budget a thread sheds its own connections, even if a much heavier client is on another
 * thread.
 */
const FALLBACK = 5 / 4;
/**
 * A thread sheds its own client if that has at least this fraction of the bytes of the heaviest client, which is on another
 * thread. Otherwise only one thread at a time would shed a crowd of equal clients, more slowly than the crowd fills the
 * others.
 */
const NEARLY_HEAVIEST = 3 / 4;

/** The bytes buffered for one connection of a client. */
interface Weighed {
  readonly client: string;
  /** The counter of the client; undefined if nothing was ever buffered. */
  readonly bucket: number | undefined;
  readonly bytes: number;
}

/**
 * Returns the connections of the heaviest client, largest first. If this client is on another thread, that thread sheds it
 * in its next sweep, unless it hangs: then returns those of the heaviest client of this thread if it is nearly as heavy, or
 * if the budget is exceeded by far.
 *
 * @param all the connections of this thread.
 * @param limit the budget of all threads together, in bytes.
 */
export function heaviestClient<Connection extends Weighed>(
  all: readonly Connection[],
  counters: SharedByteCounters,
  limit: number,
): readonly Connection[] | undefined {
  const heaviest = counters.heaviest();
  const found = heaviestIn(heaviest, all);
  if (found !== undefined) return found;
  let bucket = heaviest;
  let most = 0;
  for (const each of all) {
    if (each.bucket === undefined || each.bytes === 0) continue;
    const bytes = counters.bytesIn(each.bucket);
    if (bytes > most) [most, bucket] = [bytes, each.bucket];
  }
  const isFarBeyond = counters.total > limit * FALLBACK;
  const isHeavy = most >= counters.bytesIn(heaviest) * NEARLY_HEAVIEST;
  return isFarBeyond || isHeavy ? heaviestIn(bucket, all) : undefined;
}

/** Returns the connections of the heaviest client in a bucket. Other clients in the same bucket are not charged for it. */
function heaviestIn<Connection extends Weighed>(
  bucket: number,
  all: readonly Connection[],
): readonly Connection[] | undefined {
  const bytesOf = new Map<string, number>();
  const inBucket = all.filter((each) => each.bucket === bucket && each.bytes > 0);
  for (const { client, bytes } of inBucket) {
    bytesOf.set(client, (bytesOf.get(client) ?? 0) + bytes);
  }
  const [heaviest] = [...bytesOf].toSorted(([, one], [, other]) => other - one);
  if (heaviest === undefined) return undefined;
  return inBucket
    .filter(({ client }) => client === heaviest[0])
    .toSorted((one, other) => other.bytes - one.bytes);
}

import { hash } from "node:crypto";
import type { SettleConcurrency } from "../../core/shared-parts.ts";
import { pacedTask } from "../../lib/async/paced-task.ts";
import { type SharedCounts, type Slots, ThreadCounts } from "../../lib/async/shared-counts.ts";

/** How often changes are settled with other replicas, in milliseconds. */
const SETTLE_EVERY_MS = 100;
/** After this many rounds, all counts are reported again: the server drops those of a silent replica. */
const REPEAT_ROUNDS = 20;
/** The maximum number of names to settle. For further names, requests of other replicas do not count. */
const MOST_NAMES = 50_000;

/** The result of the last settlement of a name. */
interface Settled {
  /** Requests in flight here at that time. */
  readonly told: number;
  /** Requests in flight in other replicas. */
  readonly elsewhere: number;
  /** The round of the last change in this process. */
  readonly round: number;
}

/** Exchanges counts of requests in flight with other replicas, at most ten times a second. No request waits for it. */
class ConcurrencySettling {
  readonly #settle: SettleConcurrency;
  readonly #inFlight: Pick<InFlight, "count">;
  readonly #settled = new Map<string, Settled>();
  #changed = new Set<string>();
  #round = 0;
  readonly #requestRun = pacedTask(SETTLE_EVERY_MS, () => this.#run());

  constructor(settle: SettleConcurrency, inFlight: Pick<InFlight, "count">) {
    this.#settle = settle;
    this.#inFlight = inFlight;
  }

  /** Returns how many requests other replicas had in flight at the last settlement. */
  elsewhere(name: string): number {
    return this.#settled.get(name)?.elsewhere ?? 0;
  }

  /** Records that a request has begun, ended or been refused. */
  changed(name: string): void {
    const names = this.#changed.size + this.#settled.size;
    if (names >= MOST_NAMES && !this.#settled.has(name)) return;
    this.#changed.add(name);
    this.#requestRun();
  }

  /** Runs one round. Returns whether there is more to settle. */
  async #run(): Promise<boolean> {
    this.#round += 1;
    const changed = this.#changed;
    this.#changed = new Set();
    await this.#tell(changed);
    return this.#changed.size > 0 || this.#settled.size > 0;
  }

  async #tell(changed: ReadonlySet<string>): Promise<void> {
    const round = this.#round;
    const repeats = round % REPEAT_ROUNDS === 0;
    const names = repeats ? this.#withRepeated(changed) : changed;
    const counts = [...names]
      .map((key) => ({ key, requests: this.#inFlight.count(key) }))
      .filter(({ key, requests }) => repeats || requests > 0 || this.#isNews(key));
    if (counts.length === 0) return;
    const elsewhere = await this.#settle(counts).catch(() => undefined);
    // Without the server, each replica counts on its own. What stays in flight is reported until the server is back.
    if (elsewhere === undefined) {
      for (const [key, each] of this.#settled) this.#settled.set(key, { ...each, elsewhere: 0 });
    }
    for (const [place, { key, requests }] of counts.entries()) {
      const others = elsewhere?.[place] ?? 0;
      const since = changed.has(key) ? round : (this.#settled.get(key)?.round ?? round);
      this.#settled.set(key, { told: requests, elsewhere: others, round: since });
    }
  }

  /** Whether to settle a name without requests here. Not if the last settlement found none anywhere. */
  #isNews(name: string): boolean {
    const settled = this.#settled.get(name);
    return settled === undefined || settled.told > 0 || settled.elsewhere > 0;
  }

  /** Returns all names with requests here or recent changes, and forgets the others. */
  #withRepeated(changed: ReadonlySet<string>): ReadonlySet<string> {
    const names = new Set(changed);
    for (const [name, { round }] of this.#settled) {
      const idle = this.#round - round > REPEAT_ROUNDS && this.#inFlight.count(name) === 0;
      if (idle && !changed.has(name)) this.#settled.delete(name);
      else names.add(name);
    }
    return names;
  }
}

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

/** Maximum length of a key. A longer one is replaced by its hash: a subject can be as long as a token. */
const LONGEST_KEY = 128;

type ConcurrencySettings = Pick<ConcurrencyLimit, "requests" | "by">;

/** A limit on the requests in flight on a route. */
export class ConcurrencyLimit {
  readonly requests: number;
  /** What shares one count: all requests of the route, those of one subject, or those of one client network. */
  readonly by: "route" | "subject" | "client";
  readonly #route: string;
  readonly #inFlight: InFlight;
  readonly #settling: ConcurrencySettling | undefined;

  /**
   * @param inFlight counts the requests in flight in this process, for all routes.
   * @param settle adds up the requests in flight of all replicas. Without it, this replica counts on its own.
   */
  constructor(
    route: string,
    { requests, by }: ConcurrencySettings,
    inFlight: InFlight,
    settle?: SettleConcurrency,
  ) {
    this.requests = requests;
    this.by = by;
    this.#route = route;
    this.#inFlight = inFlight;
    this.#settling = settle && new ConcurrencySettling(settle, inFlight);
  }

  /** Counts a request. @returns whether there was room; if so, call `release` when the request has ended. */
  take(key: string): boolean {
    const name = this.#nameOf(key);
    const all = this.#inFlight.add(name) + (this.#settling?.elsewhere(name) ?? 0);
    const allowed = all <= this.requests;
    if (!allowed) this.#inFlight.remove(name);
    this.#settling?.changed(name);
    return allowed;
  }

  release(key: string): void {
    const name = this.#nameOf(key);
    this.#inFlight.remove(name);
    this.#settling?.changed(name);
  }

  #nameOf(key: string): string {
    const short = key.length > LONGEST_KEY ? hash("sha256", key, "base64url") : key;
    return `${this.#route}\0${this.by}\0${short}`;
  }
}

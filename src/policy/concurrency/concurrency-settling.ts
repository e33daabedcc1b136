import type { SettleConcurrency } from "../../core/shared-parts.ts";
import { PacedTask } from "../../lib/async/paced-task.ts";
import type { InFlight } from "./in-flight.ts";

/** How often what has changed is settled with other replicas, in milliseconds. */
const SETTLE_EVERY_MS = 100;
/** The number of rounds after which everything is reported again, so that the server knows that this replica is alive. */
const REPEAT_ROUNDS = 20;
/** Maximum number of names to settle; for further ones, the other replicas' requests do not count. */
const MOST_NAMES = 50_000;

/** A name that was sent to others, or asked about. */
interface Settled {
  /** In flight here when it was settled. */
  readonly told: number;
  /** In flight in other replicas. */
  readonly elsewhere: number;
  /** The round in which it changed here last. */
  readonly round: number;
}

/** Settles the local requests in flight with other replicas, at most ten times a second. Requests do not wait for it. */
export class ConcurrencySettling {
  readonly #settle: SettleConcurrency;
  readonly #inFlight: Pick<InFlight, "count">;
  readonly #settled = new Map<string, Settled>();
  #changed = new Set<string>();
  #round = 0;
  readonly #runs = new PacedTask(SETTLE_EVERY_MS, () => this.#run());

  constructor(settle: SettleConcurrency, inFlight: Pick<InFlight, "count">) {
    this.#settle = settle;
    this.#inFlight = inFlight;
  }

  /** How many requests other replicas had in flight when it was settled last. */
  elsewhere(name: string): number {
    return this.#settled.get(name)?.elsewhere ?? 0;
  }

  /** A request has begun, ended or been refused. */
  changed(name: string): void {
    const names = this.#changed.size + this.#settled.size;
    if (names >= MOST_NAMES && !this.#settled.has(name)) return;
    this.#changed.add(name);
    this.#runs.request();
  }

  /** Returns whether there is something to settle. */
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
    // Without the server, each counts for itself.
    if (elsewhere === undefined) return this.#settled.clear();
    for (const [place, { key, requests }] of counts.entries()) {
      const others = elsewhere[place] ?? 0;
      const since = changed.has(key) ? round : (this.#settled.get(key)?.round ?? round);
      this.#settled.set(key, { told: requests, elsewhere: others, round: since });
    }
  }

  /** Whether a name without requests here is asked about: that others have none either holds until it is forgotten. */
  #isNews(name: string): boolean {
    const settled = this.#settled.get(name);
    return settled === undefined || settled.told > 0 || settled.elsewhere > 0;
  }

  /** Everything that is in flight, and what else changed lately. The rest is forgotten. */
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

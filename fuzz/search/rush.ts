import { setTimeout as delay } from "node:timers/promises";
import type { ClassName } from "../classes.ts";
import type { Fault, FaultKind } from "../judge/fault.ts";
import type { FuzzClass } from "./fuzz-class.ts";
import type { Finding } from "./narrow.ts";
import type { Played } from "./stage.ts";
import type { Stages } from "./stages.ts";
import type { Origin, Suspicion } from "./suspicion.ts";
import type { Tally } from "./tally.ts";

export interface RushOptions {
  readonly stages: Stages;
  readonly classes: ReadonlyMap<ClassName, FuzzClass>;
  readonly tally: Tally;
  readonly seed: number;
  readonly cases?: number;
  readonly kinds?: readonly FaultKind[];
  readonly say?: (line: string) => void;
}

/** The number of concurrent cases. */
const LANES = 48;
/** Cases per seed and class: few, so that a case can be regenerated quickly by its number. */
const BATCH = 40;
/** How long after its end a case is judged, in milliseconds: its requests may still be in transit. */
const JUDGED_AFTER_MS = 200;
/** How long after its end all requests of a case must have arrived, in milliseconds, even on a busy machine. */
const FORGOTTEN_AFTER_MS = 10_000;
/** How often the proxy is checked and progress is printed, in milliseconds. */
const TICK_MS = 3_000;
/** How often to look for troubles that belong to no single case, in milliseconds. */
const LOOK_EVERY_MS = 50;
/** The number of recent cases that are suspected of such a trouble. */
const RECENT = 150;

interface Pending {
  readonly origin: Origin;
  readonly played: Played;
  readonly endedAt: number;
}

/** Plays many cases at once, until something is wrong. */
export class Rush {
  readonly #options: RushOptions;
  readonly #known = new Set<string>();
  readonly #stopping = new Set<ClassName>();
  readonly #cases: Iterator<Origin, never>;
  #left: number;
  #pending: Pending[] = [];
  #judged: Pending[] = [];
  #recent: Origin[] = [];
  #suspicion: Suspicion | undefined;
  /** The time up to which `playedMs` was counted. */
  #since = 0;

  constructor(options: RushOptions) {
    this.#options = options;
    this.#cases = drawn(options);
    this.#left = options.cases ?? Infinity;
  }

  /** Whether all requested cases have been played, or no class is left to play. */
  get done(): boolean {
    return this.#left <= 0 || this.#stopping.size === this.#options.classes.size;
  }

  /** Ignores the same fault of the same class from now on. A class that stalls the proxy is no longer played. */
  ignore({ name, kind }: Finding): void {
    this.#known.add(`${name} ${kind}`);
    if (kind === "stall") this.#stopping.add(name);
  }

  /** Plays until something is wrong; resolves with undefined if nothing is until the deadline (of `performance.now`). */
  async until(deadline: number): Promise<Suspicion | undefined> {
    this.#suspicion = undefined;
    const over = (): boolean =>
      this.#suspicion !== undefined ||
      this.done ||
      performance.now() > deadline ||
      this.#options.stages.exited();
    const ticks = this.#tick(over);
    this.#since = performance.now();
    await Promise.all(Array.from({ length: LANES }, () => this.#lane(over)));
    await delay(JUDGED_AFTER_MS);
    this.#judge(performance.now());
    await ticks;
    await this.#lookAround();
    return this.#suspicion;
  }

  async #lane(over: () => boolean): Promise<void> {
    while (!over()) {
      const origin = this.#cases.next().value;
      if (this.#stopping.has(origin.name)) continue;
      this.#left -= 1;
      this.#recent.push(origin);
      if (this.#recent.length > 2 * RECENT) this.#recent = this.#recent.slice(-RECENT);
      const played = await origin.drawn.play();
      const now = performance.now();
      this.#options.tally.playedMs += now - this.#since;
      this.#since = now;
      this.#pending.push({ origin, played, endedAt: now });
      this.#judge(now - JUDGED_AFTER_MS);
    }
  }

  /** Judges the cases that ended before this time. If the proxy has ended, no single case is suspected. */
  #judge(before: number): void {
    const dead = this.#options.stages.exited();
    for (const pending of endedBefore(this.#pending, before)) {
      const { origin, played } = pending;
      const verdict = played.verdict();
      this.#options.tally.add(origin.name, verdict);
      if (!dead) this.#suspect(verdict.faults, [origin]);
      this.#judged.push(pending);
    }
    for (const { origin, played } of endedBefore(this.#judged, before - FORGOTTEN_AFTER_MS)) {
      const faults = played.afterwards();
      if (!dead) this.#suspect(faults, [origin]);
    }
  }

  #suspect(faults: readonly Fault[], suspects: readonly Origin[]): void {
    const { kinds } = this.#options;
    const names = new Set(suspects.map(({ name }) => name));
    const counting = faults.filter(
      ({ kind }) =>
        (kinds === undefined || kinds.includes(kind)) &&
        ![...names].some((name) => this.#known.has(`${name} ${kind}`)),
    );
    if (counting.length > 0) this.#suspicion ??= { faults: counting, suspects };
  }

  async #tick(over: () => boolean): Promise<void> {
    let next = performance.now() + TICK_MS;
    while (!over()) {
      await delay(LOOK_EVERY_MS);
      if (performance.now() < next) {
        this.#suspectRecent(this.#options.stages.troubles());
        continue;
      }
      next += TICK_MS;
      this.#options.say?.(this.#options.tally.line());
      await this.#lookAround();
    }
  }

  async #lookAround(): Promise<void> {
    this.#suspectRecent(await this.#options.stages.lookAround());
  }

  #suspectRecent(faults: readonly Fault[]): void {
    this.#suspect(faults, this.#recent.toReversed().slice(0, RECENT));
  }
}

/** Removes and returns those that ended before a time; the list is in order. */
function endedBefore(all: Pending[], time: number): Pending[] {
  const later = all.findIndex(({ endedAt }) => endedAt >= time);
  return all.splice(0, later === -1 ? all.length : later);
}

/** Generates endless cases, of each class in turn; only a tenth as many configurations, which cost more. */
function* drawn({ classes, seed }: RushOptions): Generator<Origin, never> {
  for (let batch = seed; ; batch += 1) {
    const batches = Array.from(classes, ([name, each]) => {
      const size = name === "config" && classes.size > 1 ? BATCH / 10 : BATCH;
      return { name, cases: each.batch(batch, size) };
    });
    for (let index = 0; index < BATCH; index += 1) {
      for (const { name, cases } of batches) {
        const one = cases[index];
        if (one !== undefined) yield { name, seed: batch, index, drawn: one };
      }
    }
  }
}

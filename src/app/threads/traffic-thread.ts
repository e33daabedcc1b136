import { setTimeout as delay } from "node:timers/promises";
import type { IssuerState } from "../../core/status.ts";
import { withTimeout } from "../../lib/async/with-timeout.ts";
import type { LogSink } from "../../observe/log/log-sink.ts";
import { type MetricObjects, summedCounts } from "../../observe/metrics/series.ts";
import type { ReloadState } from "../reload/reload-states.ts";
import type { ThreadApi, ThreadPlacement } from "./thread.ts";
import { ThreadLife } from "./thread-life.ts";
import type { TrafficChange, TrafficOptions } from "../traffic.ts";

/** A thread whose event loop has not turned for this many checks hangs. There is one check per second. */
const HUNG_CHECKS = 10;
/** Maximum duration of a start, in checks: it loads all of Sallyport, perhaps with little CPU time. */
const START_CHECKS = 60;
/** After a life of at least this many checks, the next end of the thread counts as its first. */
const LONG_LIFE_CHECKS = 60;
/** Number of consecutive short lives after which the process is unhealthy. */
const UNHEALTHY_ENDS = 5;
/**
 * Backoff, in milliseconds: the first restart is immediate, the second happens after `FIRST_BACKOFF_MS`, and each
 * further one after twice the previous time.
 */
const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;

/** Judges a traffic thread by regular checks over all its lives. */
class ThreadHealth {
  /** Checks since the thread last turned and served, in any life. */
  #away = 0;
  /** Checks since this life last turned. */
  #still = 0;
  #age = 0;
  /** Consecutive ends of short lives. */
  #ends = 0;

  /**
   * @param seen whether its event loop has turned since the last check, and whether it accepts clients.
   * @returns whether this life hangs.
   */
  check({ turned, listens }: { readonly turned: boolean; readonly listens: boolean }): boolean {
    this.#age += 1;
    this.#still = turned ? 0 : this.#still + 1;
    this.#away = turned && listens ? 0 : this.#away + 1;
    if (this.#away === 0 && this.#age >= LONG_LIFE_CHECKS) this.#ends = 0;
    return listens ? this.#still >= HUNG_CHECKS : this.#age >= START_CHECKS;
  }

  started(): void {
    this.#age = 0;
    this.#still = 0;
  }

  /**
   * Records the end of a life.
   *
   * @returns how long to wait before the next one, in milliseconds, so that a thread that fails at start is not
   * restarted in a tight loop.
   */
  ended(): number {
    this.#ends += 1;
    return this.#ends === 1
      ? 0
      : Math.min(FIRST_BACKOFF_MS * 2 ** (this.#ends - 2), MAX_BACKOFF_MS);
  }

  /** A failure that is permanent or long-lasting; undefined if there is none. */
  get failure(): string | undefined {
    if (this.#ends >= UNHEALTHY_ENDS) return `has ended ${this.#ends} times in a row`;
    return this.#away >= HUNG_CHECKS ? `has not served for ${this.#away} s` : undefined;
  }
}

/** Interval at which the metrics of a thread are fetched, in checks. If a thread ends, its later counts are lost. */
const COUNT_CHECKS = 15;
/** A thread that has not terminated this many checks after `terminate` was called is stuck in a system call. */
const STUCK_CHECKS = 5;
/** How long a scrape waits for a thread, in milliseconds. */
const SCRAPE_MS = 1_000;
/** Grace period of a drain beyond its time limits, for the last responses and for closing, in milliseconds. */
const DRAIN_GRACE_MS = 1_000;

/** A traffic thread, for the main thread. A thread that hangs is terminated; one that has ended is restarted. */
export class TrafficThread {
  readonly #index: number;
  readonly #placement: Omit<ThreadPlacement, "port">;
  #options: TrafficOptions;
  readonly #sink: LogSink;
  readonly #state: ReloadState;
  readonly #health = new ThreadHealth();
  #life: ThreadLife;
  #drains = false;
  #drained = false;
  /** The life that has prepared the next change. */
  #prepared: ThreadLife | undefined;
  /** The metrics of this life as last fetched. */
  #counted: MetricObjects = [];
  #countedAgo = 0;
  /** The metrics of all earlier lives. */
  #before: Promise<MetricObjects> = Promise.resolve([]);
  #counting: Promise<void> | undefined;
  #terminatedAgo = 0;

  constructor(options: TrafficOptions, sink: LogSink, placement: ThreadPlacement) {
    this.#options = options;
    this.#sink = sink;
    this.#index = placement.index;
    this.#placement = placement;
    this.#state = options.reloads.add();
    this.#life = this.#begin(placement.port);
    this.#options = forSuccessors(options);
    // If the first start fails, `listening` rejects, and the start of the process fails.
    this.#life.listening.then(
      ({ port }) => void this.#outlive(this.#life, port),
      () => undefined,
    );
  }

  /** Resolves with the address when the current life listens. Rejects if it cannot. */
  get listening(): Promise<{ readonly address: string; readonly port: number }> {
    return this.#life.listening;
  }

  /** Whether it serves clients. */
  get alive(): boolean {
    return this.#life.serves;
  }

  get issuers(): readonly IssuerState[] {
    return this.#life.issuers;
  }

  /** A permanent failure; undefined if there is none. */
  get failure(): string | undefined {
    const { failure: fault } = this.#health;
    return fault === undefined || this.#drained ? undefined : `worker ${this.#index} ${fault}`;
  }

  /** Must be called once a second. */
  check(): void {
    const life = this.#life;
    if (this.#drained) return;
    const hangs = this.#health.check({ turned: life.turned(), listens: life.serves });
    this.#countedAgo += 1;
    if (life.terminated) this.#checkTermination();
    else if (hangs && !life.hasExited) this.#terminate(life);
    else if (life.serves && this.#countedAgo >= COUNT_CHECKS) void this.#fetchCounts();
  }

  /**
   * Prepares a change. Rejects if this is not possible. If the thread cannot answer, its successor starts with the
   * change.
   */
  async prepare(changed: TrafficChange): Promise<void> {
    this.#prepared = undefined;
    if (this.#drains || !this.#life.serves) return;
    this.#prepared = this.#life;
    await this.#life.change("prepare", changed);
  }

  /** Puts the prepared change in force, also for later lives of the thread. */
  async commit(changed: TrafficChange): Promise<void> {
    if (this.#drains) return;
    this.#options = forSuccessors({ ...this.#options, ...changed });
    const life = this.#life;
    if (life.hasExited) return;
    if (this.#prepared === life) await life.change("commit");
    else void this.#catchUp(life, changed);
  }

  rollback(): void {
    if (!this.#life.hasExited) this.#life.rollback();
  }

  async drain(): Promise<boolean> {
    this.#drains = true;
    const life = this.#life;
    const { delay: delayMs, timeout } = this.#options.configuration.server.drain;
    const drained = await life.drain(delayMs + timeout + DRAIN_GRACE_MS);
    if (drained === undefined) life.terminate();
    else this.#counted = drained.metrics;
    this.#drained = true;
    return drained?.finished ?? false;
  }

  async abandon(): Promise<void> {
    this.#drains = true;
    this.#life.terminate();
    await this.#life.exited;
  }

  /** Returns the metrics of all lives. If the thread does not answer in time, returns the last known ones. */
  async metrics(): Promise<readonly MetricObjects[]> {
    await withTimeout(this.#fetchCounts(), SCRAPE_MS, undefined);
    const [before, counted] = [this.#before, this.#counted];
    return [await before, counted];
  }

  /** Calls a function of the thread with a timeout. Resolves with undefined if it does not answer in time. */
  ask<Name extends keyof ThreadApi>(
    name: Name,
    ...args: Parameters<ThreadApi[Name]>
  ): Promise<Awaited<ReturnType<ThreadApi[Name]>> | undefined> {
    return withTimeout(this.call(name, ...args), SCRAPE_MS, undefined);
  }

  /** Calls a function of the thread. Resolves with undefined if it does not serve, or terminates during the call. */
  async call<Name extends keyof ThreadApi>(
    name: Name,
    ...args: Parameters<ThreadApi[Name]>
  ): Promise<Awaited<ReturnType<ThreadApi[Name]>> | undefined> {
    return this.#life.serves ? this.#life.call(name, ...args) : undefined;
  }

  #begin(port: number): ThreadLife {
    this.#health.started();
    return new ThreadLife(this.#options, { ...this.#placement, port }, this.#sink, this.#state);
  }

  /** Begins another life when this one has ended, and so on. */
  async #outlive(life: ThreadLife, port: number): Promise<void> {
    await life.exited;
    const last = this.#counted;
    this.#counted = [];
    this.#before = this.#before.then((before) => summedCounts([before, last]));
    if (this.#drains) return;
    const restMs = this.#health.ended();
    this.#options.log.error("a traffic thread ended", { thread: this.#index, again_ms: restMs });
    if (restMs > 0) await delay(restMs);
    if (this.#drains) return;
    this.#life = this.#begin(port);
    void this.#outlive(this.#life, port);
  }

  #terminate(life: ThreadLife): void {
    const { log } = this.#options;
    log.error("a traffic thread does not respond", { thread: this.#index, seconds: HUNG_CHECKS });
    this.#terminatedAgo = 0;
    life.terminate();
  }

  #checkTermination(): void {
    this.#terminatedAgo += 1;
    if (this.#life.hasExited || this.#terminatedAgo !== STUCK_CHECKS) return;
    this.#options.log.error("a traffic thread cannot be terminated", { thread: this.#index });
  }

  /** Applies a change to a life that was still starting when the other threads prepared it. */
  async #catchUp(life: ThreadLife, changed: TrafficChange): Promise<void> {
    try {
      await life.change("prepare", changed);
      await life.change("commit");
    } catch (error) {
      this.#options.log.error("a traffic thread failed", { thread: this.#index, error });
      life.terminate();
    }
  }

  #fetchCounts(): Promise<void> {
    this.#counting ??= this.#readCounts().finally(() => (this.#counting = undefined));
    return this.#counting;
  }

  async #readCounts(): Promise<void> {
    const life = this.#life;
    const counted = await this.call("scrape");
    if (counted === undefined || life.hasExited) return;
    this.#counted = counted;
    this.#countedAgo = 0;
  }
}

/** Without the contents of key files: they change without a reload, so a later life must read them again. */
function forSuccessors(options: TrafficOptions): TrafficOptions {
  return { ...options, files: { ...options.files, trustedKeyFiles: new Map() } };
}

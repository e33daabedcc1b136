import type { EventEmitter } from "node:events";
import type { UpstreamLoad } from "../core/forwarder.ts";
import type { Clock } from "../lib/clock.ts";
import { createTarget, type Target, type UpstreamTls } from "./target.ts";
import { WaitingLine, type WaitingLineLimits } from "./waiting-line.ts";

/** One upstream of the configuration; times in milliseconds. */
export interface UpstreamOptions {
  readonly name: string;
  /** At least one. */
  readonly targets: readonly string[];
  readonly tls?: UpstreamTls | undefined;
  /** The most requests under way at one target. */
  readonly connections: number;
  /** For requests that come when every target has so many. */
  readonly queue: WaitingLineLimits;
  readonly timeouts: { readonly connect: number; readonly response: number; readonly idle: number };
  readonly websocket: { readonly handshake: number; readonly idle: number };
}

/** Whoever holds a place while it waits for its client to read. */
export interface Holder {
  /** Asked when others wait for a place: ends, and thereby gives it back. */
  giveWay(): void;
}

/**
 * An answer that waits for its client gives its place up after so long, when others wait for one: in milliseconds, with
 * 256 KiB under way a client that reads these in that time is never asked. Clients that read a few bytes a second
 * could hold all connections to a backend otherwise (slowhttptest -X).
 */
const GIVES_WAY_MS = 500;
/** How often is looked for one, while somebody waits. */
const LOOK_EVERY_MS = 100;

/** A group of targets that serve the same. */
export class Upstream {
  readonly name: string;
  readonly options: UpstreamOptions;
  readonly #clock: Clock;
  readonly #targets: readonly Target[];
  readonly #line: WaitingLine<Target>;
  /** Since when, monotonic; who waits longest comes first. */
  readonly #held = new Map<Holder, number>();
  #looking: NodeJS.Timeout | undefined;
  #turn = 0;

  constructor(options: UpstreamOptions, clock: Clock) {
    this.#clock = clock;
    this.name = options.name;
    this.options = options;
    const { tls, connections, timeouts, queue } = options;
    this.#line = new WaitingLine(queue);
    this.#targets = options.targets.map((address) =>
      createTarget({ address, tls, connections, timeouts }),
    );
  }

  /** The next target in turn that has room, with a place on it; undefined when none has. The place is to be given back. */
  take(): Target | undefined {
    for (let tried = 0; tried < this.#targets.length; tried += 1) {
      const target = this.#targets[this.#turn];
      this.#turn = (this.#turn + 1) % this.#targets.length;
      if (target !== undefined && target.inFlight < target.connections) {
        target.inFlight += 1;
        return target;
      }
    }
    return undefined;
  }

  /**
   * A place on the target that has room first, for those who come when none has.
   *
   * @param client closes when nobody waits any more.
   * @returns undefined when the client left.
   * @throws GateError `upstream_busy` when too many wait, or one has waited too long.
   */
  wait(client: EventEmitter): Promise<Target | undefined> {
    const joined = this.#line.join(client);
    this.#makeRoom();
    this.#looking ??= setInterval(() => this.#makeRoom(), LOOK_EVERY_MS).unref();
    return joined;
  }

  /** Told of who waits for its client, and since when (monotonic milliseconds). */
  held(holder: Holder, now: number): void {
    this.#held.set(holder, now);
  }

  flows(holder: Holder): void {
    this.#held.delete(holder);
  }

  #makeRoom(): void {
    let wanted = this.#line.length;
    if (wanted === 0) {
      clearInterval(this.#looking);
      this.#looking = undefined;
    }
    const before = this.#clock.monotonic() - GIVES_WAY_MS;
    for (const [holder, since] of this.#held) {
      if (wanted === 0 || since > before) return;
      wanted -= 1;
      this.#held.delete(holder);
      holder.giveWay();
    }
  }

  /** Gives back a place: to who has waited longest, if anybody waits. */
  release(target: Target): void {
    if (this.#line.length === 0 || !this.#line.serve(target)) target.inFlight -= 1;
  }

  get load(): UpstreamLoad {
    const inFlight = this.#targets.reduce((sum, target) => sum + target.inFlight, 0);
    return { inFlight, waiting: this.#line.length };
  }

  /** Ends all connections, after what runs on them. */
  async close(): Promise<void> {
    await Promise.all(this.#targets.map((target) => target.pool.close()));
  }
}

import type { EventEmitter } from "node:events";
import type { UpstreamLoad } from "../core/forwarder.ts";
import type { Clock } from "../lib/clock.ts";
import { Shares } from "./shares.ts";
import { type Claimant, type Holder, SlowHolders } from "./slow-holders.ts";
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

/**
 * Who waits for its own client gives its place up after so long, when others wait for one: in milliseconds. A client that
 * reads the 256 KiB that are under way in that time, or sends 16 KiB, is never asked. Clients that read or send a few bytes
 * a second could hold all connections to a backend otherwise (slowhttptest -X, -B).
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
  readonly #places = new Shares();
  readonly #slow = new SlowHolders(this.#places);
  readonly #line: WaitingLine<Target>;
  #looking: NodeJS.Timeout | undefined;
  #turn = 0;

  constructor(options: UpstreamOptions, clock: Clock) {
    this.#clock = clock;
    this.name = options.name;
    this.options = options;
    const { tls, connections, timeouts, queue } = options;
    this.#line = new WaitingLine(queue, this.#places);
    this.#targets = options.targets.map((address) =>
      createTarget({ address, tls, connections, timeouts }),
    );
  }

  /** The next target in turn that has room, with a place on it; undefined when none has. The place is to be given back. */
  take({ client }: Claimant): Target | undefined {
    for (let tried = 0; tried < this.#targets.length; tried += 1) {
      const target = this.#targets[this.#turn];
      this.#turn = (this.#turn + 1) % this.#targets.length;
      if (target !== undefined && target.inFlight < target.connections) {
        target.inFlight += 1;
        this.#places.add(client);
        return target;
      }
    }
    return undefined;
  }

  /**
   * A place on the target that has room first, for those who come when none has.
   *
   * @param connection closes when nobody waits any more.
   * @returns undefined when the client left.
   * @throws GateError `upstream_busy` when too many wait, or one has waited too long.
   */
  wait({ client }: Claimant, connection: EventEmitter): Promise<Target | undefined> {
    const joined = this.#line.join(client, connection);
    this.#makeRoomFor(client, this.#line.lengthOf(client) - 1);
    this.#looking ??= setInterval(() => this.#makeRoom(), LOOK_EVERY_MS).unref();
    return joined;
  }

  /** Told of who waits for its client, and since when (monotonic milliseconds); of the same one again, it begins anew. */
  held(holder: Holder, now: number): void {
    this.#slow.held(holder, now);
  }

  flows(holder: Holder): void {
    this.#slow.flows(holder);
  }

  /** Gives back a place: to whose turn it is, if anybody waits. */
  release(target: Target, claimant: Claimant): void {
    this.#slow.gone(claimant);
    const served = this.#line.serve(target);
    if (served === undefined) target.inFlight -= 1;
    else this.#places.add(served);
  }

  #makeRoom(): void {
    if (this.#line.length === 0) {
      clearInterval(this.#looking);
      this.#looking = undefined;
    }
    for (const client of this.#line.clients()) {
      let ahead = 0;
      while (ahead < this.#line.lengthOf(client) && this.#makeRoomFor(client, ahead)) ahead += 1;
    }
  }

  /** Looks for a place for a client of whose requests so many wait ahead of this one. */
  #makeRoomFor(client: string, ahead: number): boolean {
    if (this.#line.length <= this.#slow.leaving) return false;
    const before = this.#clock.monotonic() - GIVES_WAY_MS;
    return this.#slow.ask(client, this.#places.of(client) + ahead, before);
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

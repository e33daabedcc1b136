import { GateError } from "../core/errors.ts";
import { createTarget, type Target, type UpstreamTls } from "./target.ts";

/** One upstream of the configuration; times in milliseconds. */
export interface UpstreamOptions {
  readonly name: string;
  /** At least one. */
  readonly targets: readonly string[];
  readonly tls?: UpstreamTls | undefined;
  /** The most requests under way at one target. */
  readonly connections: number;
  readonly timeouts: { readonly connect: number; readonly response: number; readonly idle: number };
  readonly websocket: { readonly handshake: number; readonly idle: number };
}

/** A group of targets that serve the same. */
export class Upstream {
  readonly name: string;
  readonly options: UpstreamOptions;
  readonly #targets: readonly Target[];
  #turn = 0;

  constructor(options: UpstreamOptions) {
    this.name = options.name;
    this.options = options;
    const { tls, connections, timeouts } = options;
    this.#targets = options.targets.map((address) =>
      createTarget({ address, tls, connections, timeouts }),
    );
  }

  /**
   * The next target in turn that has room.
   * @throws GateError `upstream_busy` when none has.
   */
  pick(): Target {
    for (let tried = 0; tried < this.#targets.length; tried += 1) {
      const target = this.#targets[this.#turn];
      this.#turn = (this.#turn + 1) % this.#targets.length;
      if (target !== undefined && target.inFlight < target.connections) return target;
    }
    throw new GateError("upstream_busy", { reason: "upstream_busy", retryAfter: 1 });
  }

  /** Ends all connections, after what runs on them. */
  async close(): Promise<void> {
    await Promise.all(this.#targets.map((target) => target.pool.close()));
  }
}

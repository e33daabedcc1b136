import { GateError } from "../core/errors.ts";
import type { Clock } from "../lib/clock.ts";
import type { Holder } from "./slow-holders.ts";
import type { Target } from "./target.ts";
import type { Carriage } from "./websocket.ts";

/**
 * The place at a backend that an upgrade takes as long as its handshake lasts, or its refusal is under way: half-open
 * upgrades are as bounded as requests are.
 */
export class HandshakePlace implements Holder {
  readonly client: string;
  readonly #carriage: Carriage;
  readonly #clock: Clock;
  #target: Target | undefined;

  constructor(carriage: Carriage, clock: Clock) {
    this.client = carriage.permit.request.network;
    this.#carriage = carriage;
    this.#clock = clock;
  }

  /** @throws GateError `upstream_busy`, or `reset` when the client has left. */
  async take(): Promise<Target> {
    const { upstream, request } = this.#carriage;
    const target = upstream.take(this) ?? (await upstream.wait(this, request.socket));
    if (target === undefined) throw new GateError("reset", { reason: "aborted" });
    this.#target = target;
    return target;
  }

  /** The refusal stands still until the client has read what waits for it; it goes on with `flows`. */
  held(): void {
    if (this.#target !== undefined) this.#carriage.upstream.held(this, this.#clock.monotonic());
  }

  flows(): void {
    this.#carriage.upstream.flows(this);
  }

  giveWay(): void {
    this.#carriage.transfer.brokeOff = "slow_client";
    this.#carriage.response.destroy();
  }

  /** Gives it back; a second time it does nothing. */
  release(): void {
    if (this.#target === undefined) return;
    this.flows();
    this.#carriage.upstream.release(this.#target, this);
    this.#target = undefined;
  }
}

import type { Socket } from "node:net";
import type { Closing } from "./fair-queue.ts";
import type { BufferHolder } from "../../core/request/transfer.ts";
import { GateError } from "../../core/request/errors.ts";
import type { OutgoingResponse } from "../../core/request/http-message.ts";
import type { ClientBody } from "../http/client-body.ts";
import type { Connection } from "../http/connection.ts";
import type { ForwardingSettings, PermittedRequest } from "../http/dispatch.ts";
import { isIdempotent } from "../http/repetition.ts";
import type { Target } from "./target.ts";
import type { InFlightCounts, Requester } from "./in-flight-counts.ts";

/**
 * In bytes per millisecond: 256 KiB/s over five seconds. A client that reads more slowly may lose its slot to a waiting
 * request. Reading is noticed late: Linux reports room only when a third of the socket's buffer is free
 * (`sk_stream_write_space`), 1.4 MB of up to 4 MB (`tcp_wmem`). That is five seconds at this rate, so a client that reads
 * steadily and at least as fast always shows progress in time.
 */
const SLOWEST = (256 * 1024) / 1000;
const OVER_MS = 5_000;

/**
 * Measures how fast a client reads its answer: a bucket of five seconds, filled by what the client reads and drained while the
 * answer waits for the client. Time spent waiting for the backend does not count.
 */
export class ReadingPace {
  #leftMs = OVER_MS;
  #counted: number;
  #waitsSince: number | undefined;

  /** @param bytes sent to the client so far. */
  constructor(bytes: number) {
    this.#counted = bytes;
  }

  /** The answer waits for the client. @returns when the client will count as slow; monotonic milliseconds, like `now`. */
  waits(bytes: number, now: number): number {
    this.goesOn(now);
    this.#leftMs = Math.min(this.#leftMs + (bytes - this.#counted) / SLOWEST, OVER_MS);
    this.#counted = bytes;
    this.#waitsSince = now;
    return now + this.#leftMs;
  }

  /** The answer no longer waits. */
  goesOn(now: number): void {
    if (this.#waitsSince !== undefined) this.#leftMs -= now - this.#waitsSince;
    this.#waitsSince = undefined;
  }
}

/** A request that holds a slot and can be preempted. */
export type SlotHolder = Requester & Pick<Slot, "preempt">;

/**
 * The requests that hold a slot and are stalled by their own clients. If none could be preempted, clients that read or send a
 * few bytes a second would hold all connections to a backend (slowhttptest -X, -B).
 */
export class StalledRequests {
  /** The slots of each requester, without those of preempted requests. */
  readonly #inFlight: InFlightCounts;
  /** When each becomes preemptible, in monotonic milliseconds; longest-stalled first. */
  readonly #stalled = new Map<SlotHolder, number>();
  /** Those that were preempted and have not yet released their slots. */
  readonly preempted = new Set<Requester>();

  constructor(inFlight: InFlightCounts) {
    this.#inFlight = inFlight;
  }

  /** A request is stalled, and preemptible from `slowAt` (monotonic milliseconds). Replaces an earlier time. */
  add(holder: SlotHolder, slowAt: number): void {
    this.#stalled.delete(holder);
    this.#stalled.set(holder, slowAt);
  }

  remove(holder: SlotHolder): void {
    this.#stalled.delete(holder);
  }

  /**
   * Preempts the longest-stalled request of the requester with the most slots, and only if it has more than `slots`;
   * a client may always preempt itself. So a stranger who takes all slots cannot preempt the others.
   *
   * @param requester the requester that needs a slot.
   * @param slots the slots that it would have by then without this one.
   * @param now monotonic milliseconds.
   * @returns whether a request was preempted.
   */
  preemptFor(requester: Requester, slots: number, now: number): boolean {
    let most = slots;
    let heaviest: SlotHolder | undefined;
    let own: SlotHolder | undefined;
    for (const [holder, slowAt] of this.#stalled) {
      if (slowAt > now) continue;
      const count = this.#inFlight.of(holder);
      if (count > most) {
        most = count;
        heaviest = holder;
      }
      if (holder.client === requester.client) own ??= holder;
    }
    const victim = heaviest ?? own;
    if (victim === undefined) return false;
    this.#stalled.delete(victim);
    this.#inFlight.remove(victim);
    this.preempted.add(victim);
    victim.preempt();
    return true;
  }
}

/** A client is slow if it takes longer than this for 16 KiB of a body, in milliseconds: less than 32 KiB/s. */
const SENDS_WITHIN_MS = 500;

/** Minimum memory of a backend connection while it or the client is stalled, in bytes: one or two chunks. */
const BACKEND_BYTES = 64 * 1024;

/** What a slot needs to know about its request. */
type SlotRequest = Pick<PermittedRequest, "permit" | "upstream" | "transfer"> & {
  readonly settings: Pick<ForwardingSettings, "clock" | "reading">;
  readonly response: Pick<OutgoingResponse, "headersSent" | "destroy">;
};

/**
 * The lease of a slot at a target by one request: taken if there is room, or waited for, and released as soon as the
 * backend is done. While its own client stalls the request, another client may preempt it.
 */
export class Slot implements Requester, BufferHolder {
  readonly client: string;
  readonly user: string | undefined;
  /** Undefined without a slot. */
  target: Target | undefined;
  /** The connection that carries the request, set just before it is sent. */
  connection: Connection | undefined;
  /** Undefined for a request without a body. */
  body: ClientBody | undefined;
  readonly #request: SlotRequest;
  /** What the client stalls: the response until it reads, the request until it sends. */
  #unread = false;
  #unsent = false;
  #pace: ReadingPace | undefined;
  /** The backend connection that is charged to the client. */
  #charged: Socket | undefined;

  constructor(request: SlotRequest) {
    const { permit } = request;
    this.#request = request;
    this.client = permit.request.network;
    this.user = permit.identity?.subject;
  }

  /** See `Requester`. */
  get once(): boolean {
    const { request } = this.#request.permit;
    return !isIdempotent(request) || request.bodyLength !== 0;
  }

  /** Takes a free slot, or returns undefined. @param avoid a target that has failed this request. */
  take(avoid?: Target): Target | undefined {
    this.target = this.#request.upstream.take(this, avoid);
    return this.target;
  }

  /**
   * Waits for a slot.
   *
   * @param client closes when the client has left; the result is then undefined.
   * @throws GateError `upstream_busy`.
   */
  async wait(client: Closing): Promise<Target | undefined> {
    this.target = await this.#request.upstream.wait(this, client);
    return this.target;
  }

  /** Releases the slot, if any. */
  release(): void {
    const { target } = this;
    if (target === undefined) return;
    const { upstream, settings } = this.#request;
    if (this.#unread || this.#unsent) upstream.stalled.remove(this);
    upstream.release(target, this);
    this.target = undefined;
    if (this.#charged === undefined) return;
    settings.reading.release(this.#charged);
    this.#charged = undefined;
  }

  /** Charges the client for a part of a large response, and for the backend connection until the slot is released. */
  charge(client: Socket): void {
    if (this.target === undefined) return;
    this.#charged = this.connection?.socket;
    this.#request.settings.reading.charge(client, this.#charged);
  }

  /**
   * The bytes held in addition to those in the client's socket: those of the body, and the memory of the backend
   * connection. A stalled one has read or accepted more than it could pass on. Only what it has accepted can be measured.
   */
  get bufferedBytes(): number {
    const { connection, body } = this;
    const waiting = body?.bufferedBytes ?? 0;
    const stored = waiting + (body?.replayBytes ?? 0);
    if (this.target === undefined) return stored;
    const stalled = this.#unread || (waiting > 0 && !this.#unsent);
    const accepted = connection?.bufferedBytes ?? connection?.socket?.writableLength ?? 0;
    return stored + Math.max(stalled ? BACKEND_BYTES : 0, accepted);
  }

  /** The response is stalled until the client reads. `bytesOut` is what has been sent so far. See `readResumed`. */
  readStalled(bytesOut: number): void {
    this.#unread = true;
    this.#pace ??= new ReadingPace(bytesOut);
    this.#stall(this.#pace.waits(bytesOut, this.#now));
  }

  /** The client has read everything buffered for it. */
  readResumed(): void {
    this.#unread = false;
    this.#pace?.goesOn(this.#now);
    if (this.#unsent) this.#stall(this.#now + SENDS_WITHIN_MS);
    else this.#request.upstream.stalled.remove(this);
  }

  /** The backend is waiting for more of the body: called when that begins, and after every 16 KiB. */
  sendStalled(): void {
    this.#unsent = true;
    if (!this.#unread) this.#stall(this.#now + SENDS_WITHIN_MS);
  }

  /** The backend has all of the body, or as much as it accepts. */
  sendResumed(): void {
    this.#unsent = false;
    if (!this.#unread) this.#request.upstream.stalled.remove(this);
  }

  /** Aborts the request, which releases its slot a moment later. */
  preempt(): void {
    const { response, transfer } = this.#request;
    const error = new GateError("request_timeout", { reason: "slow_client" });
    if (!response.headersSent && this.body?.fail(error) === true) return;
    transfer.abortReason ??= "slow_client";
    response.destroy();
  }

  get #now(): number {
    return this.#request.settings.clock.monotonic();
  }

  /** A request without a slot does not block others. */
  #stall(slowAt: number): void {
    if (this.target !== undefined) this.#request.upstream.stalled.add(this, slowAt);
  }
}

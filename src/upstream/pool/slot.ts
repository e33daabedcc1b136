import type { Closing } from "./fair-queue.ts";
import type { Socket } from "node:net";
import type { Permit } from "../../core/request/permit.ts";
import type { Connection } from "../http/connection.ts";
import { isIdempotent } from "../http/dispatch.ts";
import type { ForwardingSettings } from "../http/permitted-request.ts";
import { ReadingPace } from "../http/reading-pace.ts";
import type { SlotHolder } from "./stalled-requests.ts";
import type { Target } from "./target.ts";
import type { TargetOrigin } from "./target-origin.ts";
import type { Upstream } from "./upstreams.ts";

/** A client is slow if it takes longer than this for 16 KiB of a body, in milliseconds: less than 32 KiB/s. */
const SENDS_WITHIN_MS = 500;

/** Minimum memory of a backend connection while it or the client is stalled, in bytes: one or two chunks. */
const BACKEND_BYTES = 64 * 1024;

/** The request that holds a slot. */
interface SlotOwner {
  /** Aborts the request, which releases its slot a moment later. */
  preempt(): void;
}

/**
 * The lease of a slot at a target by one request: taken if there is room, or waited for, and released as soon as the
 * backend is done. While its own client stalls the request, another client may preempt it.
 */
export class Slot implements SlotHolder {
  readonly client: string;
  readonly user: string | undefined;
  readonly once: boolean;
  /** The connection that carries the request, set just before it is sent. */
  connection: Connection | undefined;
  readonly #upstream: Upstream;
  readonly #settings: Pick<ForwardingSettings, "clock" | "reading">;
  readonly #owner: SlotOwner;
  #target: Target | undefined;
  /** What the client stalls: the response until it reads, the request until it sends. */
  #unread = false;
  #unsent = false;
  #pace: ReadingPace | undefined;
  /** The backend connection that is charged to the client. */
  #charged: Socket | undefined;

  constructor(
    upstream: Upstream,
    permit: Permit,
    settings: Pick<ForwardingSettings, "clock" | "reading">,
    owner: SlotOwner,
  ) {
    this.client = permit.request.network;
    this.user = permit.identity?.subject;
    this.once = !isIdempotent(permit.request) || permit.request.bodyLength !== 0;
    this.#upstream = upstream;
    this.#settings = settings;
    this.#owner = owner;
  }

  /** The origin of the target; undefined without a slot. */
  get origin(): TargetOrigin | undefined {
    return this.#target?.origin;
  }

  get target(): Target | undefined {
    return this.#target;
  }

  /** Takes a free slot, or returns undefined. @param avoid a target that has failed this request. */
  take(avoid?: Target): Target | undefined {
    this.#target = this.#upstream.take(this, avoid);
    return this.#target;
  }

  /**
   * Waits for a slot.
   *
   * @param client closes when the client has left; the result is then undefined.
   * @throws GateError `upstream_busy`.
   */
  async wait(client: Closing): Promise<Target | undefined> {
    this.#target = await this.#upstream.wait(this, client);
    return this.#target;
  }

  /** Releases the slot, if any. */
  release(): void {
    if (this.#target === undefined) return;
    this.#upstream.resumed(this);
    this.#upstream.release(this.#target, this);
    this.#target = undefined;
    if (this.#charged !== undefined) this.#settings.reading.release(this.#charged);
    this.#charged = undefined;
  }

  /** Charges the client for a part of a large response, and for the backend connection until the slot is released. */
  charge(client: Socket): void {
    if (this.#target === undefined) return;
    this.#charged = this.connection?.socket;
    this.#settings.reading.charge(client, this.#charged);
  }

  /**
   * Returns the memory of the backend connection: a stalled one has read or accepted more than it could pass on. Only what
   * it has accepted can be measured.
   *
   * @param bodyBytes the bytes of the request body that wait for the backend.
   */
  bufferedBytes(bodyBytes: number): number {
    if (this.#target === undefined) return 0;
    const stalled = this.#unread || (bodyBytes > 0 && !this.#unsent);
    const { connection } = this;
    const waiting = connection?.bufferedBytes ?? connection?.socket?.writableLength ?? 0;
    return Math.max(stalled ? BACKEND_BYTES : 0, waiting);
  }

  /** The response is stalled until the client reads. `bytesOut` is what has been sent so far. See `readResumed`. */
  readStalled(bytesOut: number): void {
    this.#unread = true;
    this.#pace ??= new ReadingPace(bytesOut);
    this.#stall(this.#pace.waits(bytesOut, this.#settings.clock.monotonic()));
  }

  /** The client has read everything buffered for it. */
  readResumed(): void {
    this.#unread = false;
    this.#pace?.goesOn(this.#settings.clock.monotonic());
    if (this.#unsent) this.#stall(this.#settings.clock.monotonic() + SENDS_WITHIN_MS);
    else this.#upstream.resumed(this);
  }

  /** The backend is waiting for more of the body: called when that begins, and after every 16 KiB. */
  sendStalled(): void {
    this.#unsent = true;
    if (!this.#unread) this.#stall(this.#settings.clock.monotonic() + SENDS_WITHIN_MS);
  }

  /** The backend has all of the body, or as much as it accepts. */
  sendResumed(): void {
    this.#unsent = false;
    if (!this.#unread) this.#upstream.resumed(this);
  }

  preempt(): void {
    this.#owner.preempt();
  }

  /** A request without a slot does not block others. */
  #stall(slowAt: number): void {
    if (this.#target !== undefined) this.#upstream.stalled(this, slowAt);
  }
}

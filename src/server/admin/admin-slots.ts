import type { Socket } from "node:net";

/**
 * The phase of a connection, in the order of eviction: `idle` while nothing or only part of a head has arrived, or the
 * connection is closing; `reading` while the client reads its response; `answering` while a page creates one.
 */
const PHASES = ["idle", "reading", "answering"] as const;
export type Phase = (typeof PHASES)[number];

/** The slot of one open connection. */
export class AdminSlot {
  readonly socket: Socket;
  readonly client: string;
  #phase: Phase = "idle";
  #timer: NodeJS.Timeout | undefined;

  constructor(socket: Socket, client: string) {
    this.socket = socket;
    this.client = client;
    socket.once("close", () => clearTimeout(this.#timer));
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** Enters a phase. Calls `onTimeout` unless the next phase begins, or the connection closes, within `limitMs`. */
  enter(phase: Phase, limitMs?: number, onTimeout?: () => void): void {
    this.#phase = phase;
    clearTimeout(this.#timer);
    this.#timer =
      limitMs === undefined || onTimeout === undefined || this.socket.destroyed
        ? undefined
        : setTimeout(onTimeout, limitMs).unref();
  }
}

export interface AdminSlotLimits {
  /** The maximum number of open connections. */
  readonly all: number;
  /** The maximum per client. */
  readonly perClient: number;
  /** Called with each evicted connection. */
  readonly onEvicted: (slot: AdminSlot) => void;
}

/**
 * A fixed number of slots that always has room for one more: a client that has its share evicts its own oldest
 * connection; if all slots are taken, the client with the most loses its oldest. So no one can keep out a client with
 * few connections.
 */
export class AdminSlots {
  readonly #limits: AdminSlotLimits;
  /** Oldest first. */
  readonly #byClient = new Map<string, Set<AdminSlot>>();
  #count = 0;

  constructor(limits: AdminSlotLimits) {
    this.#limits = limits;
  }

  take(socket: Socket, client: string): AdminSlot {
    const { all, perClient } = this.#limits;
    const own = this.#byClient.get(client)?.size ?? 0;
    if (own >= perClient) this.#evict(this.#byClient.get(client));
    else if (this.#count >= all) this.#evict(this.#heaviest());
    const slot = new AdminSlot(socket, client);
    const slots = this.#byClient.get(client) ?? new Set();
    this.#byClient.set(client, slots.add(slot));
    this.#count += 1;
    socket.once("close", () => this.#remove(slot));
    return slot;
  }

  #heaviest(): ReadonlySet<AdminSlot> | undefined {
    let heaviest: ReadonlySet<AdminSlot> | undefined;
    for (const slots of this.#byClient.values()) {
      if (slots.size > (heaviest?.size ?? 0)) heaviest = slots;
    }
    return heaviest;
  }

  #evict(slots: ReadonlySet<AdminSlot> = new Set()): void {
    const byAge = [...slots];
    const phase = PHASES.find((each) => byAge.some((slot) => slot.phase === each));
    const slot = byAge.find((each) => each.phase === phase);
    if (slot === undefined) return;
    this.#remove(slot);
    slot.socket.destroy();
    this.#limits.onEvicted(slot);
  }

  #remove(slot: AdminSlot): void {
    const slots = this.#byClient.get(slot.client);
    if (slots?.delete(slot) !== true) return;
    this.#count -= 1;
    if (slots.size === 0) this.#byClient.delete(slot.client);
  }
}

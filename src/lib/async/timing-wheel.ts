/** Something that ends at a time. It is its own node of a linked list, so that adding and removing it allocates nothing. */
export class WheelEntry<Self> {
  /** The slot that it is in; -1 for none. */
  slot = -1;
  previous: Self | undefined;
  next: Self | undefined;
}

/** Enough that an entry which ends much later is passed once in four minutes. */
const SLOTS = 1024;
/** The time that a slot stands for, in milliseconds. */
const SLOT_MS = 250;

/**
 * A hashed timing wheel (Varghese and Lauck, scheme 6): entries are kept by the time at which they end, so that looking for
 * those that have ended passes only them, and a thousandth of the others. All times are milliseconds since one epoch.
 */
export class TimingWheel<Entry extends WheelEntry<Entry>> {
  readonly #heads: (Entry | undefined)[] = Array.from({ length: SLOTS }, () => undefined);
  /** No entry ends before this time, in slots since the epoch. */
  #at: number;
  #size = 0;

  /** @param now the time from which on entries are looked for. */
  constructor(now: number) {
    this.#at = Math.floor(now / SLOT_MS);
  }

  get size(): number {
    return this.#size;
  }

  /** Adds an entry, or moves it. */
  add(entry: Entry, endsAt: number): void {
    if (entry.slot !== -1) this.remove(entry);
    const at = Math.floor(endsAt / SLOT_MS);
    this.#at = Math.min(this.#at, at);
    const slot = at % SLOTS;
    const head = this.#heads[slot];
    entry.slot = slot;
    entry.next = head;
    if (head !== undefined) head.previous = entry;
    this.#heads[slot] = entry;
    this.#size += 1;
  }

  /** Removes an entry; does nothing for one that is not here. */
  remove(entry: Entry): void {
    if (entry.slot === -1) return;
    const { previous, next } = entry;
    if (previous === undefined) this.#heads[entry.slot] = next;
    else previous.next = next;
    if (next !== undefined) next.previous = previous;
    entry.slot = -1;
    entry.previous = undefined;
    entry.next = undefined;
    this.#size -= 1;
  }

  /**
   * Passes the entries that may have ended since the last call; some of them end later. The clock may have been set: forward,
   * and all that has ended is passed; back, and they are passed again in their time.
   */
  *due(now: number): Generator<Entry> {
    const to = Math.floor(now / SLOT_MS);
    const from = Math.max(Math.min(this.#at, to), to - SLOTS + 1);
    this.#at = to;
    for (let slot = from; slot <= to; slot += 1) yield* this.#in(slot % SLOTS);
  }

  /** All entries. */
  *all(): Generator<Entry> {
    for (let slot = 0; slot < SLOTS; slot += 1) yield* this.#in(slot);
  }

  /** An entry may be removed or moved while it is passed. */
  *#in(slot: number): Generator<Entry> {
    let entry = this.#heads[slot];
    while (entry !== undefined) {
      const { next } = entry;
      yield entry;
      entry = next;
    }
  }
}

/** An entry with an end time. It is its own node of a linked list, so that adding and removing it allocates nothing. */
export class WheelEntry<Self> {
  /** The slot that contains the entry; -1 for none. */
  slot = -1;
  previous: Self | undefined;
  next: Self | undefined;
}

/** One turn of the wheel takes 256 s, so an entry that ends much later is visited about once in four minutes. */
const SLOTS = 1024;
/** The time span of a slot, in milliseconds. */
const SLOT_MS = 250;

/**
 * A hashed timing wheel (Varghese and Lauck, scheme 6). It groups entries by their end time, so that a search for
 * entries that have ended visits only these and, per slot, about a thousandth of the others. All times are
 * milliseconds since the same epoch.
 */
export class TimingWheel<Entry extends WheelEntry<Entry>> {
  readonly #heads: (Entry | undefined)[] = Array.from({ length: SLOTS }, () => undefined);
  /** The first slot of the next search, counted from the epoch: entries of earlier slots were visited. */
  #at: number;
  #size = 0;

  /** @param now the start of the first search. */
  constructor(now: number) {
    this.#at = Math.floor(now / SLOT_MS);
  }

  get size(): number {
    return this.#size;
  }

  /** Adds an entry, or moves it if it is in the wheel already. */
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

  /** Removes an entry. Does nothing if it is not in the wheel. */
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
   * Yields the entries that may have ended since the last call. Some of them end later, so check each. The clock may
   * be set: if forward, the next call yields everything that has ended; if back, entries are yielded again when they
   * are due.
   */
  *due(now: number): Generator<Entry> {
    const to = Math.floor(now / SLOT_MS);
    const from = Math.max(Math.min(this.#at, to), to - SLOTS + 1);
    this.#at = to;
    for (let slot = from; slot <= to; slot += 1) yield* this.#in(slot % SLOTS);
  }

  /** Yields all entries. */
  *all(): Generator<Entry> {
    for (let slot = 0; slot < SLOTS; slot += 1) yield* this.#in(slot);
  }

  /** Yields the entries of a slot. The caller may remove or move an entry when it gets it. */
  *#in(slot: number): Generator<Entry> {
    let entry = this.#heads[slot];
    while (entry !== undefined) {
      const { next } = entry;
      yield entry;
      entry = next;
    }
  }
}

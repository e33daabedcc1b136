/** An entry that is checked often while it is active, and rarely while it is idle. */
export interface Activity {
  active: boolean;
}

/** The number of sweeps in which every idle entry is checked once, so that no change is missed for long. */
const SWEEPS_OF_IDLE = 40;

/** A map of entries. Each sweep checks all active entries and a fraction of the idle ones. */
export class ActiveEntries<Key, Entry extends Activity> {
  readonly #all = new Map<Key, Entry>();
  readonly #active = new Set<Entry>();
  #rotation: Iterator<Entry> | undefined;

  get size(): number {
    return this.#all.size;
  }

  /** Adds an entry as active. */
  add(key: Key, entry: Entry): void {
    this.#all.set(key, entry);
    entry.active = true;
    this.#active.add(entry);
  }

  get(key: Key): Entry | undefined {
    return this.#all.get(key);
  }

  values(): Iterable<Entry> {
    return this.#all.values();
  }

  activate(entry: Entry): void {
    if (entry.active) return;
    entry.active = true;
    this.#active.add(entry);
  }

  remove(key: Key): void {
    const entry = this.#all.get(key);
    this.#all.delete(key);
    if (entry !== undefined) this.#active.delete(entry);
    if (this.#all.size === 0) this.#rotation = undefined;
  }

  /**
   * Checks all active entries and the next few idle ones.
   *
   * @param look checks an entry and returns whether it is active now.
   */
  sweep(look: (entry: Entry) => boolean): void {
    for (const entry of this.#active) {
      entry.active = look(entry);
      if (!entry.active) this.#active.delete(entry);
    }
    let left = Math.ceil((this.#all.size - this.#active.size) / SWEEPS_OF_IDLE);
    for (; left > 0; left -= 1) {
      this.#rotation ??= this.#all.values();
      const next = this.#rotation.next();
      if (next.done === true) this.#rotation = undefined;
      else if (!next.value.active && look(next.value)) this.activate(next.value);
    }
  }
}

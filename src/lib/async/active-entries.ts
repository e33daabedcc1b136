/** Something that is looked at often while it is active, and seldom otherwise. */
export interface Activity {
  active: boolean;
}

/** Sweeps in which each of the entries that are not active is looked at once, so that nothing is missed for good. */
const SWEEPS_OF_IDLE = 40;

/** Entries by a key, of which only those that are active are looked at in each sweep. */
export class ActiveEntries<Key, Entry extends Activity> {
  readonly #all = new Map<Key, Entry>();
  readonly #active = new Set<Entry>();
  #rotation: Iterator<Entry> | undefined;

  get size(): number {
    return this.#all.size;
  }

  /** Adds an entry, which is active at first. */
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

  /** Looks at all active entries, and at the next few of the others. @param look returns whether the entry is active now. */
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

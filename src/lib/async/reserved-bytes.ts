import { roundUpToUnit, type SharedByteCounters } from "./shared-byte-counters.ts";

/** Counts the bytes of this thread that no client waits for, in the counters of all threads. */
export class ReservedBytes {
  readonly #counters: SharedByteCounters;
  readonly #bucket: number;
  #bytes = 0;
  /** What the counters hold of it. */
  #counted = 0;

  constructor(counters: SharedByteCounters) {
    this.#counters = counters;
    // No client has this name.
    this.#bucket = counters.bucketOf("");
  }

  /** Takes bytes if all threads then have at most `most`. */
  take(bytes: number, most: number): boolean {
    if (this.#counters.bytesIn(this.#bucket) + bytes > most) return false;
    this.#set(this.#bytes + bytes);
    return true;
  }

  free(bytes: number): void {
    this.#set(this.#bytes - bytes);
  }

  #set(bytes: number): void {
    this.#bytes = bytes;
    const counted = roundUpToUnit(bytes);
    this.#counters.add(this.#bucket, counted - this.#counted);
    this.#counted = counted;
  }
}

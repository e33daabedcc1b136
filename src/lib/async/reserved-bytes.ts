import { roundUpToUnit, type SharedByteCounters } from "./shared-byte-counters.ts";

/**
 * Counts the bytes that this thread holds for no client, such as copies of requests, in the counters of all threads.
 */
export class ReservedBytes {
  readonly #counters: SharedByteCounters;
  readonly #bucket: number;
  #bytes = 0;
  /** The part of `#bytes` that is in the counters, in whole units. */
  #counted = 0;

  constructor(counters: SharedByteCounters) {
    this.#counters = counters;
    // No client has an empty name.
    this.#bucket = counters.bucketOf("");
  }

  /** Takes bytes if all threads together then hold at most `most`. Returns whether it did. */
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

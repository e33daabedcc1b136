/** Maximum size of one read, in bytes. */
const READ_BYTES = 64 * 1024;

/** Reads of at least this size belong to a large body, whose next read is as large. */
const LARGE_BYTES = 32 * 1024;

/** All connections of a thread read small messages into this buffer: each read is parsed and copied before the next one. */
const SHARED = Buffer.allocUnsafeSlow(READ_BYTES);

/**
 * The buffer that one connection reads into. While a large body arrives, it has its own buffers, which are passed
 * on without a copy.
 */
export class ReadBuffer {
  #current = SHARED;
  #isLarge = false;
  #isRetained = false;

  /** The buffer for the next read. */
  next(): Buffer {
    if (!this.#isLarge) this.#current = SHARED;
    else if (this.#isRetained || this.#current === SHARED) {
      this.#current = Buffer.allocUnsafeSlow(READ_BYTES);
    }
    this.#isRetained = false;
    return this.#current;
  }

  /** Returns the bytes of a read. @throws TypeError if Node has not read into the buffer that `next` returned last. */
  filled(bytes: number, into: Uint8Array): Buffer {
    if (into !== this.#current) throw new TypeError("the read went into another buffer");
    this.#isLarge = bytes >= LARGE_BYTES;
    return this.#current.subarray(0, bytes);
  }

  /** Returns a part of this read that stays valid afterwards: the part itself, or a copy. */
  retain(part: Buffer): Buffer {
    if (this.#current === SHARED || part.length < LARGE_BYTES) return Buffer.from(part);
    this.#isRetained = true;
    return part;
  }

  /** The message has ended: the next one may be small. */
  share(): void {
    this.#isLarge = false;
  }
}

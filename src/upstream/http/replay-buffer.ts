/** Maximum size of a body without a length that can be sent again, in bytes: the same as for one with a length. */
const MAX_BYTES = 16 * 1024;

/** The part of a body without a length that was sent, as long as it is small, so that it can be sent again. */
export class ReplayBuffer {
  #chunks: Buffer[] = [];
  #bytes = 0;
  #isComplete = true;
  /** Whether the client has sent all of it. */
  hasEnded = false;

  /** Whether everything that was sent is stored here. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  get chunks(): readonly Buffer[] {
    return this.#chunks;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(chunk: Buffer): void {
    if (!this.#isComplete) return;
    this.#bytes += chunk.length;
    this.#chunks.push(chunk);
    if (this.#bytes > MAX_BYTES || this.#chunks.length > MAX_CHUNKS) this.drop();
  }

  /** It will not be sent again. */
  drop(): void {
    this.#isComplete = false;
    this.#chunks = [];
    this.#bytes = 0;
  }
}

/** Each takes memory in addition to its bytes. */
const MAX_CHUNKS = 64;

/** The most that is kept of a body without a length, in bytes: as much as of one with a length. */
const MOST_BYTES = 16 * 1024;

/** What has been passed on of a body whose length is not known, as long as it is little, so that it can be sent again. */
export class KeptBody {
  #chunks: Buffer[] = [];
  #bytes = 0;
  #isWhole = true;
  /** Whether the client has sent all of it. */
  hasEnded = false;

  /** Whether everything that was passed on is here. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  get chunks(): readonly Buffer[] {
    return this.#chunks;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(chunk: Buffer): void {
    if (!this.#isWhole) return;
    this.#bytes += chunk.length;
    this.#chunks.push(chunk);
    if (this.#bytes > MOST_BYTES || this.#chunks.length > MOST_CHUNKS) this.drop();
  }

  /** It will not be sent again. */
  drop(): void {
    this.#isWhole = false;
    this.#chunks = [];
    this.#bytes = 0;
  }
}

/** Each takes memory besides its bytes. */
const MOST_CHUNKS = 64;

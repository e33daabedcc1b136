import { atEndOfTurn, type TurnTask } from "../async/end-of-turn.ts";

/** Receives coalesced blocks and longer chunks, in order. */
export interface BlockTaker {
  takeBlock(block: Buffer): void;
}

/** Chunks below this size are coalesced, in bytes. */
const SHORT_BYTES = 1_024;
/** The size of a coalesced block, in bytes. */
const BLOCK_BYTES = 16 * 1024;

/**
 * Coalesces short chunks that arrive in the same turn of the event loop. Each chunk costs about 200 bytes of memory in
 * addition to its content, and one read of 64 KiB can yield ten thousand chunks of one byte.
 */
export class ChunkCoalescer implements TurnTask {
  readonly #taker: BlockTaker;
  /** The first chunk, until a second one follows. */
  #first: Buffer | undefined;
  #block: Buffer | undefined;
  #length = 0;
  #flushes = false;

  constructor(taker: BlockTaker) {
    this.#taker = taker;
  }

  add(chunk: Buffer): void {
    if (chunk.length >= SHORT_BYTES) {
      this.flush();
      this.#taker.takeBlock(chunk);
      return;
    }
    if (this.#length + chunk.length > BLOCK_BYTES) this.flush();
    if (this.#length === 0) this.#first = chunk;
    else this.#append(chunk);
    this.#length += chunk.length;
    if (this.#flushes) return;
    this.#flushes = true;
    atEndOfTurn(this);
  }

  #append(chunk: Buffer): void {
    this.#block ??= Buffer.allocUnsafe(BLOCK_BYTES);
    this.#first?.copy(this.#block);
    this.#first = undefined;
    chunk.copy(this.#block, this.#length);
  }

  /** Passes on the collected chunks. */
  flush(): void {
    if (this.#length === 0) return;
    const whole = this.#first ?? Buffer.from(this.#block?.subarray(0, this.#length) ?? []);
    this.#first = this.#block = undefined;
    this.#length = 0;
    this.#taker.takeBlock(whole);
  }

  runAtEndOfTurn(): void {
    this.#flushes = false;
    this.flush();
  }
}

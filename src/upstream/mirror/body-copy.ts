import type { BufferedBytes } from "../../core/buffered-bytes.ts";
import type { MirrorResult } from "../../core/route/mirror.ts";
import { TimeoutEntry, type TimeoutList } from "../../lib/async/timeout-list.ts";

/** Called once, when a copy has ended. */
interface CopyEvents {
  /** The request is complete. @param reserved bytes to be freed when the copy is no longer needed. */
  copied(body: Buffer | undefined, reserved: number): void;
  /** The request is not copied. */
  dropped(why: MirrorResult): void;
}

/** Copies the body of a request as it passes, within bounds. It never delays the request. */
export class BodyCopy extends TimeoutEntry {
  readonly #most: number;
  readonly #buffered: Pick<BufferedBytes, "reserve" | "free">;
  readonly #events: CopyEvents;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #over = false;

  /** @param most the maximum size, in bytes. */
  constructor(most: number, buffered: Pick<BufferedBytes, "reserve" | "free">, events: CopyEvents) {
    super();
    this.#most = most;
    this.#buffered = buffered;
    this.#events = events;
  }

  /** Begins. @param length of the body; negative if it is unknown. @param limit the time until it must be complete. */
  begin(length: number, limit: TimeoutList): void {
    if (length > this.#most) this.drop("body_too_large");
    else if (length !== 0) limit.start(this);
  }

  /** A part of the body has arrived. It is copied, since it may be a view of a large buffer. */
  add(chunk: Buffer): void {
    if (this.#over) return;
    if (this.#bytes + chunk.length > this.#most) return this.drop("body_too_large");
    if (!this.#buffered.reserve(chunk.length)) return this.drop("memory");
    this.#bytes += chunk.length;
    this.#chunks.push(Buffer.from(chunk));
  }

  /** The request is complete. */
  end(): void {
    if (this.#over) return;
    this.#leave();
    const body = this.#bytes === 0 ? undefined : Buffer.concat(this.#chunks);
    this.#chunks = [];
    this.#events.copied(body, this.#bytes);
  }

  /** Drops the copy, unless it is complete. */
  drop(why: MirrorResult): void {
    if (this.#over) return;
    this.#leave();
    this.#chunks = [];
    this.#buffered.free(this.#bytes);
    this.#events.dropped(why);
  }

  override onTimeout(): void {
    this.drop("body_too_slow");
  }

  #leave(): void {
    this.#over = true;
    this.list?.cancel(this);
  }
}

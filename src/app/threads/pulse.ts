/** Interval of the heartbeat of a thread, in milliseconds. */
const BEAT_MS = 500;

/** The memory that a thread and its watcher share. */
export type SharedPulse = SharedArrayBuffer;

export function createPulse(): SharedPulse {
  return new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
}

/**
 * Starts the heartbeat of this thread's event loop. It uses shared memory, not messages, which wait if the receiving
 * thread is busy.
 */
export function beat(pulse: SharedPulse): void {
  const beats = new Int32Array(pulse);
  setInterval(() => Atomics.add(beats, 0, 1), BEAT_MS).unref();
}

/** Watches the heartbeat of another thread. */
export class PulseWatch {
  readonly #beats: Int32Array<SharedArrayBuffer>;
  #seen = 0;

  constructor(pulse: SharedPulse) {
    this.#beats = new Int32Array(pulse);
  }

  /** Reports whether the thread has beaten since the last call. */
  hasBeaten(): boolean {
    const beats = Atomics.load(this.#beats, 0);
    const moved = beats !== this.#seen;
    this.#seen = beats;
    return moved;
  }
}

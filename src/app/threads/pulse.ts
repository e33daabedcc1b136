/** Interval of the heartbeat of a thread, in milliseconds. */
const BEAT_MS = 500;

/** Allocates the memory that a thread and its watcher share. */
export function createPulse(): SharedArrayBuffer {
  return new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
}

/**
 * Starts the heartbeat of this thread's event loop. It uses shared memory, not messages, which wait if the receiving
 * thread is busy.
 */
export function beat(pulse: SharedArrayBuffer): void {
  const beats = new Int32Array(pulse);
  setInterval(() => Atomics.add(beats, 0, 1), BEAT_MS).unref();
}

/** Watches the heartbeat of another thread. @returns a function that reports whether it has beaten since the last call. */
export function watchPulse(pulse: SharedArrayBuffer): () => boolean {
  const beats = new Int32Array(pulse);
  let seen = 0;
  return () => seen !== (seen = Atomics.load(beats, 0));
}

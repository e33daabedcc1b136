import type { EventEmitter } from "node:events";

export interface Reaching {
  /** Milliseconds, for each of looking up, connecting and shaking hands. */
  readonly timeoutMs: number;
  readonly nowMs: number;
}

/** Waits for an event. Rejects with what the `error` event tells. */
export async function happens(emitter: EventEmitter, event: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  emitter.once(event, () => resolve()).on("error", reject);
  await promise;
}

/** @throws TimeoutError when the time is up. */
export async function within<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(new DOMException("no answer in time", "TimeoutError")),
    timeoutMs,
  );
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

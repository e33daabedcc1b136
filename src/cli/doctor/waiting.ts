import type { EventEmitter } from "node:events";

export interface ReachOptions {
  /** Maximum time for each step (look-up, connection, handshake), in milliseconds. */
  readonly timeoutMs: number;
  readonly nowMs: number;
}

/** Waits for an event. Rejects with the error of an `error` event. */
export async function eventOf(emitter: EventEmitter, event: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  emitter.once(event, () => resolve()).on("error", reject);
  await promise;
}

/** @throws TimeoutError after `timeoutMs`. */
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

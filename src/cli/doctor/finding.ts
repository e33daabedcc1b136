import type { EventEmitter } from "node:events";
import type { Snapshot } from "../../config/snapshot.ts";
import { withTimeout } from "../../lib/async/with-timeout.ts";
import { LATE, RemoteError } from "../../lib/text/error-code.ts";

/** The result of one check of the doctor. */
export interface Finding {
  readonly result: "good" | "warning" | "bad" | "skipped";
  /** What was checked and its state, in one line. */
  readonly message: string;
  /** What to do about it. */
  readonly hint?: string;
}

/** What the checks of the doctor work on. */
export interface Examined extends ReachOptions {
  readonly snapshot: Snapshot;
  /** The differences between the local clock and those of other machines, as far as the checks found them. */
  readonly clocks: ClockDifference[];
}

/** The difference between the local clock and that of a server, from the `Date` of its response. */
export interface ClockDifference {
  readonly server: string;
  /** How far the local clock is behind, in milliseconds. */
  readonly behindMs: number;
}

const finding =
  (result: Finding["result"]) =>
  (message: string, hint?: string): Finding => {
    return { result, message, ...(hint === undefined ? {} : { hint }) };
  };

export const good = finding("good");
export const warning = finding("warning");
export const bad = finding("bad");
export const skipped = finding("skipped");

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

/** @throws RemoteError after `timeoutMs`. */
export async function within<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  const found = await withTimeout(promise, timeoutMs, new RemoteError(LATE));
  if (found instanceof RemoteError) throw found;
  return found;
}

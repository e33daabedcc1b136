import type { Revocation } from "../core/revocation.ts";
import type { AttemptEnd } from "../core/shared-parts.ts";
import { StateUnavailable } from "./state-connection.ts";
import { readEvent } from "./wire.ts";

/** Callbacks for the events of other replicas. */
export interface SharedListeners {
  /** @param agoMs how long ago the attempt ended, in milliseconds. */
  readonly attemptEnded: (end: AttemptEnd, agoMs: number) => void;
  readonly revoked: (revocations: readonly Revocation[]) => void;
}

const ID = /^(\d{1,15})-(\d{1,15})$/;
export const FIRST_ID = "0-0";

/** Whether the event `id` came after the event `other`. */
export function isAfter(id: string, other: string): boolean {
  const [, ms = "0", place = "0"] = ID.exec(id) ?? [];
  const [, otherMs = "0", otherPlace = "0"] = ID.exec(other) ?? [];
  return ms === otherMs ? Number(place) > Number(otherPlace) : Number(ms) > Number(otherMs);
}

/**
 * Passes the events of a stream to the listeners, except our own.
 *
 * @param nowMs the server's time; omit it for events that have just arrived.
 * @returns the id of the last event, or `after` if there is none.
 * @throws StateUnavailable for anything but events.
 */
export function deliver(
  entries: unknown,
  { own, after, nowMs }: { readonly own: string; readonly after: string; readonly nowMs?: number },
  { attemptEnded, revoked }: SharedListeners,
): string {
  let last = after;
  const revocations: Revocation[] = [];
  for (const entry of listOf(entries)) {
    const [id, fields] = listOf(entry);
    const [, ms] = typeof id === "string" ? (ID.exec(id) ?? []) : [];
    if (typeof id !== "string" || ms === undefined) throw notUnderstood();
    last = id;
    const [, from, , text] = listOf(fields);
    if (from === own) continue;
    const event = readEvent(text, Date.now());
    if (event === undefined) continue;
    if ("revocation" in event) revocations.push(event.revocation);
    else attemptEnded(event.attempt, Math.max(0, (nowMs ?? Number(ms)) - Number(ms)));
  }
  if (revocations.length > 0) revoked(revocations);
  return last;
}

/** Returns a value that must be a list. @throws StateUnavailable for anything else. */
export function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw notUnderstood();
}

/** Returns a value that must be a list of texts. @throws StateUnavailable for anything else. */
export function textsOf(value: unknown): readonly string[] {
  return listOf(value).map((each) => {
    if (typeof each !== "string") throw notUnderstood();
    return each;
  });
}

function notUnderstood(): StateUnavailable {
  return new StateUnavailable("an answer that is not understood");
}

import type { TargetState } from "../../core/request/forwarder.ts";

/**
 * Merges the targets of all threads. Each target gets its worst state in any thread, and the requests of all threads.
 */
export function inAllThreads(ofThreads: readonly (readonly TargetState[])[]): TargetState[] {
  const found = new Map<string, TargetState>();
  for (const state of ofThreads.flat()) {
    const key = JSON.stringify([state.upstream, state.target]);
    const other = found.get(key);
    const inFlight = state.inFlight + (other?.inFlight ?? 0);
    const worse = other === undefined || other.state === "available" ? state : other;
    const negotiated = worse.negotiated ?? state.negotiated ?? other?.negotiated;
    found.set(key, { ...worse, negotiated, inFlight });
  }
  return [...found.values()];
}

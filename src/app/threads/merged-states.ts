import type { IssuerState } from "../../core/issuer-state.ts";
import type { TargetState } from "../../core/request/forwarder.ts";

/** Merges the targets of several threads: each gets its worst state in any thread, and the requests of all. */
export function mergeTargets(ofThreads: readonly (readonly TargetState[])[]): TargetState[] {
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

/** Merges the issuers of all threads: an issuer is usable if no thread lacks its keys. */
export function mergeIssuers(ofThreads: readonly (readonly IssuerState[])[]): IssuerState[] {
  const worst = new Map<string, IssuerState>();
  for (const state of ofThreads.flat()) {
    const other = worst.get(state.issuer) ?? state;
    const { fetches = state.fetches } = other;
    worst.set(state.issuer, {
      issuer: state.issuer,
      ...(fetches && {
        fetches: { ...fetches, stale: fetches.stale || state.fetches?.stale === true },
      }),
      usable: state.usable && other.usable,
      keys: Math.min(state.keys, other.keys),
      readAt: earlier(state.readAt, other.readAt),
    });
  }
  return [...worst.values()];
}

/** Returns the earlier of two times, or undefined if either is undefined, which means never. */
function earlier(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : Math.min(a, b);
}

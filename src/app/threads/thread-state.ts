import type { RemoteOutage } from "../../core/remote-check.ts";
import type { IssuerState } from "../../core/status.ts";
import type { TargetState } from "../../upstream/pool/target.ts";
import { mergeOutages } from "../gate/remote-checks.ts";

/** What one thread reports of itself, or several together. Plain data, since it passes between threads. */
export interface ThreadState {
  /** The targets of the configuration in force. */
  readonly targets: readonly TargetState[];
  /** The servers of checks that cannot be asked. */
  readonly outages: readonly RemoteOutage[];
  /** The trusted issuers. */
  readonly issuers: readonly IssuerState[];
}

/** Merges the states of several threads; those that do not answer in time are missing. */
export function mergeStates(states: readonly ThreadState[]): ThreadState {
  return {
    targets: mergeTargets(states.flatMap(({ targets }) => targets)),
    outages: mergeOutages(states.flatMap(({ outages }) => outages)),
    issuers: mergeIssuers(states.flatMap(({ issuers }) => issuers)),
  };
}

/** Merges the targets of several threads: each gets its worst state in any thread, and the requests of all. */
function mergeTargets(ofThreads: readonly TargetState[]): TargetState[] {
  const found = new Map<string, TargetState>();
  for (const state of ofThreads) {
    const key = JSON.stringify([state.upstream, state.target]);
    const other = found.get(key);
    const inFlight = state.inFlight + (other?.inFlight ?? 0);
    const oldestMs = Math.max(state.oldestMs, other?.oldestMs ?? 0);
    const worse = other === undefined || other.state === "available" ? state : other;
    const negotiated = worse.negotiated ?? state.negotiated ?? other?.negotiated;
    found.set(key, { ...worse, negotiated, inFlight, oldestMs });
  }
  return [...found.values()];
}

/** Merges the issuers of all threads: an issuer is usable if no thread lacks its keys. */
export function mergeIssuers(ofThreads: readonly IssuerState[]): IssuerState[] {
  const worst = new Map<string, IssuerState>();
  for (const state of ofThreads) {
    const other = worst.get(state.issuer) ?? state;
    const { fetches = state.fetches } = other;
    worst.set(state.issuer, {
      issuer: state.issuer,
      ...(fetches && { fetches: worse(fetches, state.fetches ?? fetches) }),
      usable: state.usable && other.usable,
      keys: Math.min(state.keys, other.keys),
      readAt: earlier(state.readAt, other.readAt),
    });
  }
  return [...worst.values()];
}

function worse(one: Fetches, other: Fetches): Fetches {
  const since = [one, other].flatMap(({ failingSince }) => failingSince ?? []);
  const failingSince = since.length === 0 ? undefined : Math.min(...since);
  return { ...one, stale: one.stale || other.stale, failingSince };
}

type Fetches = NonNullable<IssuerState["fetches"]>;

/** Returns the earlier of two times, or undefined if either is undefined, which means never. */
function earlier(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : Math.min(a, b);
}

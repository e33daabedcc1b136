import { hash } from "node:crypto";
import { keysOf } from "../../lib/keys-of.ts";
import type { Target } from "./target.ts";

/** The current weight of a target: less than configured while it starts slowly. */
type WeightOf = (target: Target) => number;

/**
 * Chooses one of several targets that are in use and have room; undefined only if there are none.
 *
 * @param client the key of the client in limits.
 */
export type Balancer = (candidates: readonly Target[], client: string) => Target | undefined;

/** Creates a balancer of one kind, which an upstream uses until it closes. */
type BalancerKind = (weightOf: WeightOf) => Balancer;

/** Returns the candidate with the highest score; of several, the first. */
function best(
  candidates: readonly Target[],
  score: (target: Target) => number,
): Target | undefined {
  let chosen: Target | undefined;
  let highest = -Infinity;
  for (const target of candidates) {
    const value = score(target);
    if (value <= highest) continue;
    highest = value;
    chosen = target;
  }
  return chosen;
}

/** Returns the requests that a target would have with one more, relative to its weight. */
function loadOf(target: Target, weightOf: WeightOf): number {
  return (target.inFlight + 1) / weightOf(target);
}

/** Targets take turns: nginx's smooth weighted round robin, where weights 5, 1, 1 give a a b a c a a. */
const roundRobin: BalancerKind = (weightOf) => (candidates) => {
  let total = 0;
  for (const target of candidates) {
    const weight = weightOf(target);
    total += weight;
    target.credit += weight;
  }
  const chosen = best(candidates, ({ credit }) => credit);
  if (chosen !== undefined) chosen.credit -= total;
  return chosen;
};

/** The target with the fewest requests. */
const leastRequests: BalancerKind = (weightOf) => (candidates) =>
  best(shuffled(candidates), (target) => -loadOf(target, weightOf));

/** Starts at a random place, so that equally loaded targets share new requests. */
function shuffled(candidates: readonly Target[]): Target[] {
  const at = Math.floor(Math.random() * candidates.length);
  return [...candidates.slice(at), ...candidates.slice(0, at)];
}

/** Of two random targets, the one with fewer requests. */
const random2: BalancerKind = (weightOf) => (candidates) =>
  best(twoOf(candidates, weightOf), (target) => -loadOf(target, weightOf));

/** Two different random targets, each with a probability proportional to its weight. */
function twoOf(candidates: readonly Target[], weightOf: WeightOf): Target[] {
  const one = byChance(candidates, weightOf);
  if (one === undefined) return [];
  const other = byChance(
    candidates.filter((target) => target !== one),
    weightOf,
  );
  return other === undefined ? [one] : [one, other];
}

function byChance(candidates: readonly Target[], weightOf: WeightOf): Target | undefined {
  let total = 0;
  for (const target of candidates) total += weightOf(target);
  let at = Math.random() * total;
  for (const target of candidates) {
    at -= weightOf(target);
    if (at < 0) return target;
  }
  return candidates.at(-1);
}

/** A client stays at its target. */
const clientHash: BalancerKind = (weightOf) => (candidates, client) =>
  best(candidates, (target) => rendezvous(client, target, weightOf(target)));

/**
 * Weighted rendezvous hashing: when a target is added or removed, only its own clients move (Schindelhauer,
 * Schomaker 2005).
 */
function rendezvous(client: string, { address }: Target, weight: number): number {
  const bits = hash("sha1", `${client}\0${address}`, "buffer").readUIntBE(0, 6);
  return -weight / Math.log((bits + 1) / (2 ** 48 + 2));
}

/** The first target in the order of the configuration; the others stand by. */
const first: BalancerKind =
  () =>
  ([target]) =>
    target;

/** The values of `balance` of an upstream: how a target is chosen among those that have room. */
const KINDS = {
  roundRobin,
  leastRequests,
  random2,
  clientHash,
  first,
} as const satisfies Readonly<Record<string, BalancerKind>>;

export type Balance = keyof typeof KINDS;

export const BALANCES: readonly Balance[] = keysOf(KINDS);

/** A target that has just been readmitted gets at least this part of its weight. */
const LEAST_SHARE = 0.1;

/**
 * @param now monotonic milliseconds.
 * @param slowStartMs the time until a target that is used again has its full weight.
 */
export function createBalancer(balance: Balance, now: () => number, slowStartMs: number): Balancer {
  return KINDS[balance]((target: Target): number => {
    if (slowStartMs === 0 || target.backSince === undefined) return target.weight;
    const share = (now() - target.backSince) / slowStartMs;
    return target.weight * Math.min(1, Math.max(LEAST_SHARE, share));
  });
}

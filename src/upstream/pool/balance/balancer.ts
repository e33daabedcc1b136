import type { Target } from "../target.ts";

/** The current weight of a target: less than configured while it starts slowly. */
export type WeightOf = (target: Target) => number;

/**
 * Chooses one of several targets that are in use and have room; undefined only if there are none.
 *
 * @param client the key of the client in limits.
 */
export type Balancer = (candidates: readonly Target[], client: string) => Target | undefined;

/** Creates a balancer of one kind, which an upstream uses until it closes. */
export type BalancerKind = (weightOf: WeightOf) => Balancer;

/** Returns the candidate with the highest score; of several, the first. */
export function best(
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
export function loadOf(target: Target, weightOf: WeightOf): number {
  return (target.inFlight + 1) / weightOf(target);
}

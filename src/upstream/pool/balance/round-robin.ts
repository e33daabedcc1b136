import type { Target } from "../target.ts";
import { type BalancerKind, best, type WeightOf } from "./balancer.ts";

/** Targets take turns. */
export const roundRobin: BalancerKind = (weightOf) => (candidates) => inTurn(candidates, weightOf);

/** nginx's smooth weighted round robin: weights 5, 1, 1 give a a b a c a a. */
function inTurn(candidates: readonly Target[], weightOf: WeightOf): Target | undefined {
  let total = 0;
  for (const target of candidates) {
    const weight = weightOf(target);
    total += weight;
    target.credit += weight;
  }
  const chosen = best(candidates, ({ credit }) => credit);
  if (chosen !== undefined) chosen.credit -= total;
  return chosen;
}

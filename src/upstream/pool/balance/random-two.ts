import type { Target } from "../target.ts";
import { type BalancerKind, best, loadOf, type WeightOf } from "./balancer.ts";

/** Of two random targets, the one with fewer requests. */
export const random2: BalancerKind = (weightOf) => (candidates) =>
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

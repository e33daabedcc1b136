import type { Target } from "../target.ts";
import { type BalancerKind, best, loadOf } from "./balancer.ts";

/** The target with the fewest requests. */
export const leastRequests: BalancerKind = (weightOf) => (candidates) =>
  best(shuffled(candidates), (target) => -loadOf(target, weightOf));

/** Starts at a random place, so that equally loaded targets share new requests. */
function shuffled(candidates: readonly Target[]): Target[] {
  const at = Math.floor(Math.random() * candidates.length);
  return [...candidates.slice(at), ...candidates.slice(0, at)];
}

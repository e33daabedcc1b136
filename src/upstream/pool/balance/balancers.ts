import { keysOf } from "../../../lib/keys-of.ts";
import type { Target } from "../target.ts";
import type { Balancer, BalancerKind } from "./balancer.ts";
import { clientHash } from "./client-hash.ts";
import { first } from "./first-target.ts";
import { leastRequests } from "./least-requests.ts";
import { random2 } from "./random-two.ts";
import { roundRobin } from "./round-robin.ts";

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

import { hash } from "node:crypto";
import type { Target } from "./target.ts";

/** How a target is chosen among those that have room. */
export type Balance = "roundRobin" | "leastRequests" | "random2" | "clientHash" | "first";

/** Chooses one of several targets. @param client the key of the client in limits. */
export type Balancer = (candidates: readonly Target[], client: string) => Target | undefined;

/** A target that has just been readmitted gets at least this part of its weight. */
const LEAST_SHARE = 0.1;

/**
 * @param now monotonic milliseconds.
 * @param slowStartMs the time until a target that is used again has its full weight.
 */
export function createBalancer(balance: Balance, now: () => number, slowStartMs: number): Balancer {
  const weightOf = (target: Target): number => {
    if (slowStartMs === 0 || target.backSince === undefined) return target.weight;
    const share = (now() - target.backSince) / slowStartMs;
    return target.weight * Math.min(1, Math.max(LEAST_SHARE, share));
  };
  switch (balance) {
    case "roundRobin":
      return (candidates) => inTurn(candidates, weightOf);
    case "leastRequests":
      return (candidates) => best(shuffled(candidates), (target) => -loadOf(target, weightOf));
    case "random2":
      return (candidates) =>
        best(twoOf(candidates, weightOf), (target) => -loadOf(target, weightOf));
    case "clientHash":
      return (candidates, client) =>
        best(candidates, (target) => rendezvous(client, target, weightOf(target)));
    case "first":
      return ([target]) => target;
  }
}

type WeightOf = (target: Target) => number;

function loadOf(target: Target, weightOf: WeightOf): number {
  return (target.inFlight + 1) / weightOf(target);
}

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

/** Starts at a random place, so that equally loaded targets share new requests. */
function shuffled(candidates: readonly Target[]): Target[] {
  const at = Math.floor(Math.random() * candidates.length);
  return [...candidates.slice(at), ...candidates.slice(0, at)];
}

/**
 * Weighted rendezvous hashing: when a target is added or removed, only its own clients move (Schindelhauer,
 * Schomaker 2005).
 */
function rendezvous(client: string, { address }: Target, weight: number): number {
  const bits = hash("sha1", `${client}\0${address}`, "buffer").readUIntBE(0, 6);
  return -weight / Math.log((bits + 1) / (2 ** 48 + 2));
}

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

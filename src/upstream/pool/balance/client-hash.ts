import { hash } from "node:crypto";
import type { Target } from "../target.ts";
import { type BalancerKind, best } from "./balancer.ts";

/** A client stays at its target. */
export const clientHash: BalancerKind = (weightOf) => (candidates, client) =>
  best(candidates, (target) => rendezvous(client, target, weightOf(target)));

/**
 * Weighted rendezvous hashing: when a target is added or removed, only its own clients move (Schindelhauer,
 * Schomaker 2005).
 */
function rendezvous(client: string, { address }: Target, weight: number): number {
  const bits = hash("sha1", `${client}\0${address}`, "buffer").readUIntBE(0, 6);
  return -weight / Math.log((bits + 1) / (2 ** 48 + 2));
}

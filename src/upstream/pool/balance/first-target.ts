import type { BalancerKind } from "./balancer.ts";

/** The first target in the order of the configuration; the others stand by. */
export const first: BalancerKind =
  () =>
  ([target]) =>
    target;

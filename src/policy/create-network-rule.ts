import type { NetworkRule } from "../core/route/route.ts";
import { createNetworks } from "../lib/http/networks.ts";

/** Creates a rule from addresses or CIDR ranges, already validated. */
export function createNetworkRule({ allow, deny }: Omit<NetworkRule, "admits">): NetworkRule {
  const allowed = allow && createNetworks(allow);
  const denied = deny && createNetworks(deny);
  return {
    ...(allow === undefined ? {} : { allow }),
    ...(deny === undefined ? {} : { deny }),
    admits: (client) => denied?.has(client) !== true && (allowed?.has(client) ?? true),
  };
}

/**
 * Whether some client may be admitted by `one` and refused by `other`. False only if both have equal lists, or
 * `other` has none.
 */
export function mayAdmitMore(
  one: NetworkRule | undefined,
  other: NetworkRule | undefined,
): boolean {
  const words = (rule: NetworkRule | undefined): string =>
    JSON.stringify([rule?.allow?.toSorted(), rule?.deny?.toSorted()]);
  return other !== undefined && words(one) !== words(other);
}

/** Describes a rule: `from 10.0.0.0/8` and `not from 10.1.0.0/16`. */
export function networkWords({ allow, deny }: Omit<NetworkRule, "admits">): string[] {
  return [
    ...(allow === undefined ? [] : [`from ${allow.join(",")}`]),
    ...(deny === undefined ? [] : [`not from ${deny.join(",")}`]),
  ];
}

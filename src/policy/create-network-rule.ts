import type { NetworkRule } from "../core/route/network-rule.ts";
import { createNetworks } from "../lib/http/networks.ts";

/** @param ranges addresses or CIDR ranges, already validated. */
export function createNetworkRule({ allow, deny }: Omit<NetworkRule, "admits">): NetworkRule {
  const allowed = allow && createNetworks(allow);
  const denied = deny && createNetworks(deny);
  return {
    ...(allow === undefined ? {} : { allow }),
    ...(deny === undefined ? {} : { deny }),
    admits: (client) => denied?.has(client) !== true && (allowed?.has(client) ?? true),
  };
}

/** Reports whether some client passes `one` and is refused by `other`, as far as equal lists tell: it may report too much. */
export function mayAdmitMore(
  one: NetworkRule | undefined,
  other: NetworkRule | undefined,
): boolean {
  const words = (rule: NetworkRule | undefined): string =>
    JSON.stringify([rule?.allow?.toSorted(), rule?.deny?.toSorted()]);
  return other !== undefined && words(one) !== words(other);
}

/** Returns `from 10.0.0.0/8` and `not from 10.1.0.0/16`. */
export function networkWords({ allow, deny }: Omit<NetworkRule, "admits">): string[] {
  return [
    ...(allow === undefined ? [] : [`from ${allow.join(",")}`]),
    ...(deny === undefined ? [] : [`not from ${deny.join(",")}`]),
  ];
}

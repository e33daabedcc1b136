import { createNetworks, type Networks } from "../lib/http/networks.ts";

/** The networks from which a route accepts requests, as configured: addresses and CIDR ranges. */
interface NetworkLists {
  /** Allowed address ranges; undefined allows every network. */
  readonly allow?: readonly string[] | undefined;
  /** Denied ranges; they take precedence over `allow`. */
  readonly deny?: readonly string[] | undefined;
}

/** Admits clients by their network. */
export class NetworkRule implements NetworkLists {
  readonly allow: readonly string[] | undefined;
  readonly deny: readonly string[] | undefined;
  readonly #allowed: Networks | undefined;
  readonly #denied: Networks | undefined;

  constructor({ allow, deny }: NetworkLists) {
    this.allow = allow;
    this.deny = deny;
    this.#allowed = allow && createNetworks(allow);
    this.#denied = deny && createNetworks(deny);
  }

  admits(client: string): boolean {
    return this.#denied?.has(client) !== true && (this.#allowed?.has(client) ?? true);
  }
}

/**
 * Whether some client may be admitted by `one` and refused by `other`. False only if both have equal lists, or
 * `other` has none.
 */
export function mayAdmitMore(
  one: NetworkLists | undefined,
  other: NetworkLists | undefined,
): boolean {
  const words = (rule: NetworkLists | undefined): string =>
    JSON.stringify([rule?.allow?.toSorted(), rule?.deny?.toSorted()]);
  return other !== undefined && words(one) !== words(other);
}

/** Describes a rule: `from 10.0.0.0/8` and `not from 10.1.0.0/16`. */
export function networkWords({ allow, deny }: NetworkLists): string[] {
  return [
    ...(allow === undefined ? [] : [`from ${allow.join(",")}`]),
    ...(deny === undefined ? [] : [`not from ${deny.join(",")}`]),
  ];
}

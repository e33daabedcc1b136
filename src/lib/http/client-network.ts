import { isIPv6 } from "node:net";
import { unmapAddress } from "./networks.ts";

/** Returns the network that counts as one client: an IPv4 address, or the /64 of an IPv6 subscriber (RFC 6177 §2). */
export function clientNetwork(client: string): string {
  const address = unmapAddress(client);
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.split("%")[0]?.split("::") ?? [];
  const first = groupsOf(head);
  const last = tail === undefined ? [] : groupsOf(tail);
  const zeros = Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => 0);
  return `${[...first, ...zeros, ...last]
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}

/**
 * A dotted quad at the end represents two groups. They are never among the first four, so their value does not
 * matter.
 */
function groupsOf(part: string): number[] {
  if (part === "") return [];
  return part.split(":").flatMap((group) => (group.includes(".") ? [0, 0] : [parseInt(group, 16)]));
}

import { isIPv6 } from "node:net";
import { plainAddress } from "./networks.ts";

/** What counts as one client: the address itself, or the /64 that one subscriber has of IPv6 (RFC 6177 §2). */
export function networkOf(client: string): string {
  const address = plainAddress(client);
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

/** A dotted quad at the end stands for two groups; it is never among the first four, so its value does not matter. */
function groupsOf(part: string): number[] {
  if (part === "") return [];
  return part.split(":").flatMap((group) => (group.includes(".") ? [0, 0] : [parseInt(group, 16)]));
}

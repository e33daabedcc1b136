import { BlockList, isIPv4, isIPv6, SocketAddress } from "node:net";

/** A set of networks. */
export interface Networks {
  readonly empty: boolean;
  has(address: string): boolean;
}

/**
 * Converts an IPv4-mapped IPv6 address (`::ffff:10.0.0.1`, RFC 4291 §2.5.5.2) to plain IPv4. Returns other addresses
 * unchanged.
 */
export function unmapAddress(address: string): string {
  return address.startsWith("::ffff:") && isIPv4(address.slice(7)) ? address.slice(7) : address;
}

/** An address with a port, or in the brackets that separate the two (RFC 3986 §3.2.2). */
const WITH_PORT = /^(?:\[([0-9A-Fa-f:.]+)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/;

/**
 * Parses an address as it is written in a header field, for example: with an optional port (`192.0.2.7:4711`,
 * `[2001:db8::1]:443`) and in any spelling of IPv6 (RFC 4291 §2.2). Returns the address without the port and in one
 * spelling, or undefined if the text is not an address.
 */
export function parseAddress(written: string): string | undefined {
  const [, v6, v4] = WITH_PORT.exec(written) ?? [];
  const address = v6 ?? v4 ?? written;
  if (v6 === undefined && isIPv4(address)) return address;
  if (v4 !== undefined || !isIPv6(address)) return undefined;
  return unmapAddress(new SocketAddress({ address, family: "ipv6" }).address);
}

/**
 * @param ranges addresses or CIDR ranges, already validated.
 * @throws ERR_INVALID_ADDRESS for a malformed range.
 */
export function createNetworks(ranges: readonly string[]): Networks {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", prefix] = range.split("/");
    // Node compiles a long expression to see that an address is one of IPv6, which takes 8 ms at the first time.
    const family = address.includes(":") ? "ipv6" : "ipv4";
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  return {
    empty: ranges.length === 0,
    has(address) {
      if (isIPv4(address)) return list.check(address, "ipv4");
      return isIPv6(address) && list.check(address, "ipv6");
    },
  };
}

/** Returns the network that counts as one client: an IPv4 address, or the /64 of an IPv6 subscriber (RFC 6177 §2). */
export function clientNetwork(client: string): string {
  // Node matches a long expression to see that an address is not of IPv6.
  if (!client.includes(":")) return client;
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

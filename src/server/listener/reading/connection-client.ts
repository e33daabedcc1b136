import type { Socket } from "node:net";
import { clientNetwork, type Networks, unmapAddress } from "../../../lib/http/networks.ts";

/**
 * Returns the client of a connection: the network of the peer. Behind a trusted proxy, each connection counts as a
 * separate client.
 */
export function clientOf(
  { remoteAddress = "", remotePort }: Socket,
  trustedProxies: Networks,
): string {
  const peer = unmapAddress(remoteAddress);
  return trustedProxies.has(peer) ? `${peer} ${remotePort}` : clientNetwork(peer);
}

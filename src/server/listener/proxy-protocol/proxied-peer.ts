import type { Socket } from "node:net";
import { setPeerAddress } from "../../../lib/node-internals/peer-address.ts";

/** Sockets whose proxy speaks for itself: it forwards for no client, so its headers about clients do not count. */
const speakForThemselves = new WeakSet<Socket>();

/** Gives a socket the address of the client that its proxy has named. @param source undefined if it speaks for itself. */
export function setPeer(
  socket: Socket,
  source: { readonly address: string; readonly port: number } | undefined,
): void {
  if (source === undefined) speakForThemselves.add(socket);
  else setPeerAddress(socket, source.address, source.port);
}

/** Gives a TLS socket the peer of the connection below it. Must run before anything reads the peer. */
export function inheritPeer(secured: Socket, below: Socket): void {
  if (speakForThemselves.has(below)) speakForThemselves.add(secured);
  const { remoteAddress, remotePort } = below;
  if (!Object.hasOwn(below, "remoteAddress")) return;
  setPeer(secured, { address: remoteAddress ?? "", port: remotePort ?? 0 });
}

/** Whether the proxy at the other end speaks for itself. */
export function speaksForItself(socket: Socket): boolean {
  return speakForThemselves.has(socket);
}

import type { Socket } from "node:net";

/** Gives a socket the address of another peer, such as the client that a proxy names. Node's properties have no setter. */
export function setPeerAddress(socket: Socket, address: string, port: number): void {
  Object.defineProperties(socket, {
    remoteAddress: { value: address, configurable: true },
    remotePort: { value: port, configurable: true },
  });
}

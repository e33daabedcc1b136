import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Peer } from "./raw-client.ts";

export interface CrowdOptions {
  /** The address of this machine's loopback that they come from. */
  readonly from?: string;
  /** Speak TLS where the peer does; else they never begin the handshake. */
  readonly tls?: boolean;
  /** What each does when it is connected. */
  readonly each?: (socket: Socket, index: number) => void;
}

/** Many connections at once, held open as long as the peer lets them. */
export interface Crowd extends Disposable {
  readonly sockets: readonly Socket[];
  /** How many stand that have been connected. */
  open(): number;
  /** How many are gone. */
  closed(): number;
  /** What each has received, as latin1. */
  received(): readonly string[];
}

/** Opens so many connections to a peer; those that fail are closed ones. */
export function startCrowd(peer: Peer, count: number, options: CrowdOptions = {}): Crowd {
  const { from = "127.0.0.1", tls = true, each } = options;
  const where = { host: "127.0.0.1", port: peer.port, localAddress: from };
  const received = Array.from({ length: count }, () => "");
  let connected = 0;
  let closed = 0;
  let lost = 0;
  const sockets = received.map((_none, index) => {
    let stands = false;
    const onConnected = (): void => {
      stands = true;
      connected += 1;
      each?.(socket, index);
    };
    const socket =
      peer.ca === undefined || !tls
        ? connectTcp(where, onConnected)
        : connectTls({ ...where, ca: peer.ca, servername: "localhost" }, onConnected);
    socket.on("data", (chunk: Buffer) => (received[index] += chunk.toString("latin1")));
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      closed += 1;
      if (stands) lost += 1;
    });
    return socket;
  });
  return {
    sockets,
    open: () => connected - lost,
    closed: () => closed,
    received: () => received,
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Writes a text again and again, so many milliseconds apart, until the socket is gone. */
export function dribble(socket: Socket, text: string, everyMs: number): void {
  const timer = setInterval(() => socket.write(text), everyMs);
  socket.once("close", () => clearInterval(timer));
}

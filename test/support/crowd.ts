import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Peer } from "./raw-client.ts";

export interface CrowdOptions {
  /** The loopback address that they connect from. */
  readonly from?: string;
  /** Whether to use TLS if the peer does; otherwise the handshake never begins. */
  readonly tls?: boolean;
  /** Called for each connection once it is established. */
  readonly each?: (socket: Socket, index: number) => void;
}

/** Many concurrent connections, held open as long as the peer allows it. */
export interface Crowd extends Disposable {
  readonly sockets: readonly Socket[];
  /** The number of established connections. */
  open(): number;
  /** The number of closed connections. */
  closed(): number;
  /** The bytes that each has received, as latin1. */
  received(): readonly string[];
}

/** Opens `count` connections to a peer. Failed ones count as closed. */
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

/** Writes a text every `everyMs` milliseconds until the socket is closed. */
export function dribble(socket: Socket, text: string, everyMs: number): void {
  const timer = setInterval(() => socket.write(text), everyMs);
  socket.once("close", () => clearInterval(timer));
}

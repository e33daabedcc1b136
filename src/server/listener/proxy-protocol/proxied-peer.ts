import type { Socket } from "node:net";
import { setPeerAddress } from "../../../lib/node-internals/node-sockets.ts";
import { MAX_HEADER_BYTES, type ProxyHeader, parseProxyHeader } from "./proxy-header.ts";

/** Sockets whose proxy speaks for itself: it forwards for no client, so its headers about clients do not count. */
const speakForThemselves = new WeakSet<Socket>();

/**
 * Reads the header of the PROXY protocol from a new connection, gives the socket the client's address, and leaves what
 * follows to the next reader.
 *
 * @param limitMs the time for the complete header.
 * @param done called once, with whether the connection continues. Otherwise it is closed.
 */
export function readProxyHeader(
  socket: Socket,
  limitMs: number,
  done: (accepted: boolean) => void,
): void {
  let arrived: Buffer = Buffer.alloc(0);
  const finish = (accepted: boolean): void => {
    clearTimeout(timer);
    socket.off("readable", onReadable).off("end", onEnd).off("close", onEnd).off("error", onEnd);
    if (accepted) {
      // Waits until Node has noticed that nothing listens for `readable` any more.
      process.nextTick(done, true);
      return;
    }
    socket.on("error", () => undefined).destroy();
    done(false);
  };
  const onEnd = (): void => finish(false);
  const onReadable = (): void => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    arrived = arrived.length === 0 ? chunk : Buffer.concat([arrived, chunk]);
    const header = parseProxyHeader(arrived);
    if (header === undefined && arrived.length < MAX_HEADER_BYTES) return;
    if (header === undefined || header === "invalid") {
      finish(false);
      return;
    }
    setPeer(socket, header.source);
    const rest = arrived.subarray(header.length);
    if (rest.length > 0) socket.unshift(rest);
    finish(true);
  };
  const timer = setTimeout(onEnd, limitMs);
  socket.on("readable", onReadable).on("end", onEnd).on("close", onEnd).on("error", onEnd);
}

function setPeer(socket: Socket, source: ProxyHeader["source"]): void {
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

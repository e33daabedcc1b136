import type { Socket } from "node:net";
import { setPeer } from "./proxied-peer.ts";
import { MAX_HEADER_BYTES, parseProxyHeader } from "./proxy-header.ts";

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

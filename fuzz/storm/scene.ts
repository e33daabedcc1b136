import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Dice } from "../../soak/dice.ts";
import { type Peer, trusting } from "../../test/support/raw-client.ts";
import type { Kinds } from "./kinds.ts";

/** Where one attacker acts, and with what. */
export interface Scene {
  readonly peer: Peer;
  readonly dice: Dice;
  readonly kinds: Kinds;
  /** The loopback address that it comes from. */
  readonly from: string;
  /** Every connection that it opens. */
  readonly lines: Set<Line>;
}

/** A connection of an attacker. */
export interface Line {
  readonly socket: Socket;
  /** Below TLS. */
  readonly raw: Socket;
}

/** How long a connection may take, in milliseconds. */
const DIAL_MS = 2_000;

/** Opens a connection. @param protocol the one that is offered with TLS (ALPN). */
export async function dial(scene: Scene, protocol: "h2" | "http/1.1"): Promise<Line | undefined> {
  const { peer, from, lines } = scene;
  const where = { host: "127.0.0.1", port: peer.port, localAddress: from };
  const raw = connect({ ...where, noDelay: true, allowHalfOpen: true });
  raw.on("error", () => raw.destroy());
  const socket =
    peer.ca === undefined
      ? raw
      : connectTls({ ...trusting(peer.ca), socket: raw, ALPNProtocols: [protocol] });
  socket.on("error", () => socket.destroy());
  const line = { socket, raw };
  lines.add(line);
  raw.once("close", () => {
    lines.delete(line);
    socket.destroy();
  });
  // A proxy that hangs holds up no attacker.
  const timer = setTimeout(() => hangUp(line), DIAL_MS);
  const opened = once(socket, peer.ca === undefined ? "connect" : "secureConnect");
  await Promise.race([opened, once(raw, "close")]).catch(() => undefined);
  clearTimeout(timer);
  return socket.destroyed ? undefined : line;
}

/** Ends a connection: at once, by RST, unless its client has left by FIN. */
export function hangUp({ socket, raw }: Line): void {
  if (!raw.destroyed && socket === raw && !raw.writableEnded) raw.resetAndDestroy();
  socket.destroy();
  raw.destroy();
}

/** Returns the path of a request to an odd backend, or to one that is unavailable. */
export function oddTarget({ dice, kinds }: Scene): string {
  const targets = ["/http1", "/h2c", "/http1", "/h2c"];
  if (kinds.has("mirrors")) targets.push("/copied-to-http1", "/copied-to-h2c");
  if (kinds.has("unavailable")) targets.push("/busy-http1", "/busy-h2c");
  return `${dice.pick(targets)}/${dice.between(0, 999)}`;
}

/** Methods of requests with a body: with the first two, Sallyport may retry. */
export const METHODS = ["PUT", "DELETE", "POST", "PATCH"];

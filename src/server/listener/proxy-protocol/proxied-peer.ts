import { isIPv4, isIPv6, type Socket } from "node:net";
import { setPeerAddress } from "../../../lib/node-internals/node-sockets.ts";
import { parseAddress } from "../../../lib/http/networks.ts";

/**
 * The header of the PROXY protocol, versions 1 and 2 (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt). The
 * parsers on npm were last released years ago, and none bounds what it reads.
 */
interface ProxyHeader {
  /** Its length in bytes. */
  readonly length: number;
  /** The client; undefined if the proxy speaks for itself, or does not know. */
  readonly source: { readonly address: string; readonly port: number } | undefined;
}

/** How the header begins, in each version. */
const V1_START = Buffer.from("PROXY ", "latin1");
const V2_START = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");
/** The longest line of version 1, with its end (§2.1). */
const V1_MAX = 107;
const V1_LINE =
  /^PROXY (TCP[46]) ([0-9A-Fa-f:.]+) ([0-9A-Fa-f:.]+) (0|[1-9]\d{0,4}) (0|[1-9]\d{0,4})$/;
const V2_FIXED = 16;
/** Addresses and TLVs of version 2, which may be 64 KiB; proxies send less than a tenth of this. */
const V2_MAX = 4096;

/** Maximum size of a header, in bytes. */
export const MAX_HEADER_BYTES = V2_FIXED + V2_MAX;

/** Parses a header. @param bytes everything that has arrived so far. @returns undefined while it is incomplete. */
export function parseProxyHeader(bytes: Buffer): ProxyHeader | "invalid" | undefined {
  if (begins(bytes, V2_START)) return bytes.length < V2_FIXED ? undefined : parseV2(bytes);
  return begins(bytes, V1_START) ? parseV1(bytes) : "invalid";
}

/** Whether the bytes that have arrived so far match this start. */
function begins(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length);
  return bytes.subarray(0, length).equals(start.subarray(0, length));
}

function parseV1(bytes: Buffer): ProxyHeader | "invalid" | undefined {
  const end = bytes.subarray(0, V1_MAX).indexOf("\r\n");
  if (end === -1) return bytes.length < V1_MAX ? undefined : "invalid";
  const line = bytes.toString("latin1", 0, end);
  const length = end + 2;
  if (/^PROXY UNKNOWN(?: |$)/.test(line)) return { length, source: undefined };
  const [, family, from = "", to = "", ...ports] = V1_LINE.exec(line) ?? [];
  const isAddress = family === "TCP4" ? isIPv4 : isIPv6;
  const [port = Number.NaN, own = Number.NaN] = ports.map(Number);
  if (!isAddress(from) || !isAddress(to) || !(port <= 65_535 && own <= 65_535)) return "invalid";
  return { length, source: { address: parseAddress(from) ?? from, port } };
}

function parseV2(bytes: Buffer): ProxyHeader | "invalid" | undefined {
  const command = bytes.readUInt8(12);
  const family = bytes.readUInt8(13);
  const more = bytes.readUInt16BE(14);
  if ((command !== 0x20 && command !== 0x21) || more > V2_MAX) return "invalid";
  const length = V2_FIXED + more;
  if (bytes.length < length) return undefined;
  // LOCAL, and families without a usable address: unspecified, and Unix sockets.
  if (command === 0x20 || family === 0x00 || family === 0x31) return { length, source: undefined };
  if (family === 0x11 && more >= 12) {
    const address = bytes.subarray(16, 20).join(".");
    return { length, source: { address, port: bytes.readUInt16BE(24) } };
  }
  if (family === 0x21 && more >= 36) {
    const words = Array.from({ length: 8 }, (_, at) =>
      bytes.readUInt16BE(16 + 2 * at).toString(16),
    );
    const address = parseAddress(words.join(":")) ?? "::";
    return { length, source: { address, port: bytes.readUInt16BE(48) } };
  }
  return "invalid";
}

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

import { isIPv4, isIPv6 } from "node:net";

const SIGNATURE = "\r\n\r\n\0\r\nQUIT\n";
const V1 = /^PROXY (?:TCP4 ([0-9.]+) ([0-9.]+)|TCP6 ([0-9a-f:.]+) ([0-9a-f:.]+)) (\d+) (\d+)$/i;
/** The longest line of version 1, and the longest content of version 2 that is accepted. */
const V1_BYTES = 107;
const V2_BYTES = 4096;

export interface ReadProxyHeader {
  /** The client; undefined if the proxy speaks for itself. */
  readonly source: string | undefined;
  readonly end: number;
}

/** Reads a PROXY protocol header strictly; undefined if the bytes do not begin with one. */
export function readProxyHeader(text: string): ReadProxyHeader | undefined {
  return text.startsWith(SIGNATURE) ? readV2(text) : readV1(text);
}

function readV1(text: string): ReadProxyHeader | undefined {
  const line = text.slice(0, V1_BYTES).split("\r\n", 1)[0] ?? "";
  const end = line.length + 2;
  if (text.slice(line.length, end) !== "\r\n" || end > V1_BYTES) return undefined;
  if (line === "PROXY UNKNOWN" || line.startsWith("PROXY UNKNOWN ")) {
    return { source: undefined, end };
  }
  const [, from4, to4 = "", from6 = "", to6 = "", ...ports] = V1.exec(line) ?? [];
  if (!line.startsWith(`PROXY TCP${from4 === undefined ? 6 : 4} `) || !ports.every(isPort)) {
    return undefined;
  }
  if (from4 !== undefined) return isIPv4(from4) && isIPv4(to4) ? { source: from4, end } : undefined;
  return isIPv6(from6) && isIPv6(to6) ? { source: canonical(from6), end } : undefined;
}

function isPort(text: string | undefined): boolean {
  return text !== undefined && String(Number(text)) === text && Number(text) < 65_536;
}

function readV2(text: string): ReadProxyHeader | undefined {
  const bytes = Buffer.from(text, "latin1");
  if (bytes.length < 16) return undefined;
  const [command, family] = [bytes.readUInt8(12), bytes.readUInt8(13)];
  const length = bytes.readUInt16BE(14);
  const end = 16 + length;
  if (length > V2_BYTES || bytes.length < end) return undefined;
  if (command === 0x20) return { source: undefined, end };
  if (command !== 0x21) return undefined;
  if (family === 0x00 || family === 0x31) return { source: undefined, end };
  if (family === 0x11 && length >= 12) return { source: bytes.subarray(16, 20).join("."), end };
  if (family !== 0x21 || length < 36) return undefined;
  const words = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(16 + 2 * i).toString(16));
  return { source: canonical(words.join(":")), end };
}

/** Returns an address in the canonical form of RFC 5952; an IPv4-mapped IPv6 address as IPv4. */
function canonical(address: string): string {
  const text = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [, high = "", low = ""] = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(text) ?? [];
  if (low === "") return text;
  const [one, two] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return [one >> 8, one & 255, two >> 8, two & 255].join(".");
}

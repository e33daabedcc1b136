import type { Counts, Order, Step } from "../crowd.ts";

/** The target of an attack. */
export interface Battlefield {
  readonly port: number;
  readonly adminPort: number;
  readonly tls: boolean;
  /** The connection limit of the shipped manifests. */
  readonly connections: number;
  /** A valid token. */
  readonly token: string;
  /** Returns this many other valid tokens with 200 groups each. */
  readonly largeTokens: (count: number) => Promise<readonly string[]>;
}

/** One way to exhaust the process. */
export interface Attack {
  readonly name: string;
  /** A short description. */
  readonly title: string;
  /** Set if it makes sense only over TLS, or only over plain HTTP. */
  readonly over?: "tls" | "plain";
  /** Holds all connections that strangers can have, so no new one can be expected. */
  readonly fills?: boolean;
  /** Makes the backend slow. The well-behaved client then uses another one, since slots at a backend are limited separately. */
  readonly slowBackend?: boolean;
  /** Seconds that the attack needs before measuring begins. */
  readonly lead?: number;
  /** Not part of the quick run, which has another attack of this class. */
  readonly long?: boolean;
  /** Returns the orders of all crowds, which run at the same time. */
  readonly orders: (field: Battlefield) => readonly Order[] | Promise<readonly Order[]>;
  /** Whether the attack was effective: otherwise a broken one would pass. */
  readonly bites: (counts: Counts, field: Battlefield) => boolean;
}

/** A small receive buffer and segment size, so that unread answers soon wait in the attacked process, not in the kernel. */
export const CLOGGED = { receiveBuffer: 2_048, segment: 1_400 } as const;

/** Returns addresses for attackers, different from those of the witness. */
export function addresses(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `127.1.${Math.floor(i / 250)}.${1 + (i % 250)}`);
}

/** Nine tenths of all connections, from 64 addresses, which leaves some to others. */
export function manyAddresses({ connections }: Battlefield) {
  return { addresses: addresses(64), connections: Math.floor(connections * 0.9) };
}

/** One address that opens more connections than it may have. */
export function oneAddress({ connections }: Battlefield) {
  return { addresses: addresses(1), connections: Math.min(1_000, connections) };
}

/** More connections than the limit, from 64 addresses. */
export function everyConnection({ connections }: Battlefield) {
  return { addresses: addresses(64), connections: Math.ceil(connections * 1.1) };
}

/** Returns the head of a request, padded with a field to `bytes` if that is given. */
export function request(
  path: string,
  options: { readonly token?: string; readonly fields?: string; readonly bytes?: number } = {},
): string {
  const { token, fields = "", bytes = 0 } = options;
  const authorization = token === undefined ? "" : `Authorization: Bearer ${token}\r\n`;
  const head = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${authorization}${fields}`;
  const padding = bytes - head.length - "X-Padding: \r\n\r\n".length;
  return `${head}${padding > 0 ? `X-Padding: ${"x".repeat(padding)}\r\n` : ""}\r\n`;
}

export function post(path: string, fields: string, token?: string): string {
  return request(path, { fields, ...(token !== undefined && { token }) }).replace("GET", "POST");
}

/** Returns the step of a WebSocket handshake (RFC 6455 §4.1). It must be followed by an `await` for the 101. */
export function webSocket(path: string, token: string): Step {
  const fields =
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
  return { send: request(path, { token, fields }) };
}

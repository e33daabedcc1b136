import type { Counts, Order, Step } from "../crowd.ts";

/** Whom an attack meets. */
export interface Battlefield {
  readonly port: number;
  readonly adminPort: number;
  readonly tls: boolean;
  /** The most connections of the shipped manifests. */
  readonly connections: number;
  /** A valid token. */
  readonly token: string;
  /** This many more valid tokens with 200 groups each. */
  readonly largeTokens: (count: number) => Promise<readonly string[]>;
}

/** One way to exhaust the process. */
export interface Attack {
  readonly name: string;
  /** In a few words. */
  readonly title: string;
  /** Where it makes sense on one of the two alone. */
  readonly over?: "tls" | "plain";
  /** Holds every connection that strangers can have, so nobody can expect to get a new one. */
  readonly fills?: boolean;
  /** Makes the backend slow: the well-behaved client has another one, since places at a backend are a limit of their own. */
  readonly slowBackend?: boolean;
  /** Seconds that the attack needs before it begins to count. */
  readonly lead?: number;
  /** Not part of the short form, which has another of its class. */
  readonly long?: boolean;
  /** What the crowds do, all at the same time. */
  readonly orders: (field: Battlefield) => readonly Order[] | Promise<readonly Order[]>;
  /** What shows that it was an attack: otherwise a broken one would pass. */
  readonly bites: (counts: Counts, field: Battlefield) => boolean;
}

/** A receive buffer and segments that make unread answers wait in the attacked process soon, and not in the kernels. */
export const CLOGGED = { receiveBuffer: 2_048, segment: 1_400 } as const;

/** Own addresses of attackers, other than those of the witness. */
export function addresses(count: number): readonly string[] {
  return Array.from({ length: count }, (_, i) => `127.1.${Math.floor(i / 250)}.${1 + (i % 250)}`);
}

/** Nine tenths of all connections, from 64 addresses: as many as leave one to whoever else comes. */
export function manyAddresses({ connections }: Battlefield) {
  return { addresses: addresses(64), connections: Math.floor(connections * 0.9) };
}

/** One address that asks for more connections than it gets. */
export function oneAddress({ connections }: Battlefield) {
  return { addresses: addresses(1), connections: Math.min(1_000, connections) };
}

/** More connections than there are, from 64 addresses. */
export function everyConnection({ connections }: Battlefield) {
  return { addresses: addresses(64), connections: Math.ceil(connections * 1.1) };
}

/** The head of a request, padded with two fields to `bytes` when that is given. */
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

/** A handshake of RFC 6455 §4.1; resolves nothing by itself: `await` the 101 after it. */
export function webSocket(path: string, token: string): Step {
  const fields =
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
  return { send: request(path, { token, fields }) };
}

import type { HttpMessage } from "./http-reader.ts";
import type { RawBackend } from "./raw-backend.ts";
import { type Exchange, exchange, type ExchangeOptions, type Peer } from "./raw-client.ts";

/** The result of one attack: what the client received, and every request that the backend executed for it. */
export interface Aftermath {
  /** Status codes of all responses, including 1xx, in order. */
  readonly statuses: readonly number[];
  readonly ended: Exchange["ended"];
  readonly exchange: Exchange;
  /** Requests with the mark in their target: the intended ones and the smuggled ones. */
  readonly ran: () => readonly HttpMessage[];
}

/** Returns `GET /path` for each request. */
export function targetsOf(requests: readonly HttpMessage[]): string[] {
  return requests.map(({ startLine }) => startLine.replace(/ HTTP\/1\.[01]$/, ""));
}

/**
 * Sends bytes in which every target ends in a unique mark, so that many attacks can run concurrently.
 *
 * @param mark letters and digits unique to this attack, not followed by a digit in the bytes.
 */
export async function attackMarked(
  peer: Peer,
  backend: RawBackend,
  mark: string,
  bytes: string,
  options: ExchangeOptions = {},
): Promise<Aftermath> {
  const exchanged = await exchange(peer, bytes, { timeoutMs: 5_000, ...options });
  const marked = new RegExp(`${mark}(?![0-9])`);
  return {
    statuses: exchanged.responses.map(({ status }) => status),
    ended: exchanged.ended,
    exchange: exchanged,
    ran: () => backend.requests().filter(({ startLine }) => marked.test(startLine)),
  };
}

/** Applies `act` to all items, `atATime` of them concurrently. @returns the results in the order of the items. */
export async function allOf<T, R>(
  items: readonly T[],
  act: (item: T, index: number) => Promise<R>,
  atATime = 32,
): Promise<R[]> {
  const results: R[] = [];
  for (let start = 0; start < items.length; start += atATime) {
    const batch = items.slice(start, start + atATime);
    results.push(...(await Promise.all(batch.map((item, i) => act(item, start + i)))));
  }
  return results;
}

import type { HttpMessage } from "./http-reader.ts";
import type { RawBackend } from "./raw-backend.ts";
import { type Exchange, exchange, type ExchangeOptions, type Peer } from "./raw-client.ts";

/** What became of one attack: what the client got, and every request that the backend ran for it. */
export interface Aftermath {
  /** Status codes of all answers, 1xx among them, in order. */
  readonly statuses: readonly number[];
  readonly ended: Exchange["ended"];
  readonly exchange: Exchange;
  /** Requests whose target bears the mark: those that were meant, and those that were smuggled. */
  readonly ran: () => readonly HttpMessage[];
}

/** `GET /path` of each of these requests. */
export function targetsOf(requests: readonly HttpMessage[]): string[] {
  return requests.map(({ startLine }) => startLine.replace(/ HTTP\/1\.[01]$/, ""));
}

/**
 * Sends bytes whose targets all end in a mark of their own, so that many attacks can run at the same time.
 *
 * @param mark letters and digits that no other attack has, not followed by a digit in the bytes.
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

/** Does the same to all items, so many at a time; results in the order of the items. */
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

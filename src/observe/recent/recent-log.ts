import type { RecentEvents, RecentMinute, RecentRefusal } from "../../core/recent.ts";
import type { LoginResult, Outcome, RefusalReason } from "../../core/request/outcome.ts";
import { maskTokens } from "../log/redaction.ts";

/** The number of minutes that are kept. */
export const RECENT_MINUTES = 30;

/** The number of refusals that are kept. */
export const RECENT_REFUSALS = 50;

const MINUTE_MS = 60_000;
/** The maximum length of a text, in characters. */
const LONGEST = 400;
/** The logged status if the client disconnected before the response. */
const CLIENT_GONE = 499;

/** Reasons for refusing a connection, which has no outcome. */
const OF_CONNECTIONS: ReadonlySet<RefusalReason> = new Set<RefusalReason>([
  "connections",
  "connections_per_address",
  "pipelined",
  "buffered_bytes",
  "tls_handshake",
]);

interface Minute {
  /** Minutes since the epoch. */
  number: number;
  readonly logins: Map<string, number>;
  readonly refusals: Map<string, number>;
}

/**
 * Keeps the logins and refusals of one thread in the last minutes, in two rings of fixed size. It counts words from
 * closed sets.
 */
export class RecentLog {
  readonly #now: () => number;
  readonly #minutes = Array.from({ length: RECENT_MINUTES }, () => emptyMinute(Number.NaN));
  readonly #refusals: RecentRefusal[] = [];
  #next = 0;

  /** @param now wall clock, in milliseconds since the epoch. */
  constructor(now: () => number) {
    this.#now = now;
  }

  loginFinished(result: LoginResult): void {
    count(this.#minute(this.#now()).logins, result);
  }

  /** Counts a refusal of a connection. Ignores other reasons, which have an outcome. */
  requestRefused(reason: RefusalReason): void {
    if (OF_CONNECTIONS.has(reason)) count(this.#minute(this.#now()).refusals, reason);
  }

  /** Records an outcome that is an error response of our own. */
  requestFailed(outcome: Outcome): void {
    const { id, requestId, client, method, host, path, route, status, subject, protocol } = outcome;
    if (status === CLIENT_GONE) return;
    const at = this.#now();
    const reason = outcome.reason ?? String(status);
    count(this.#minute(at).refusals, reason);
    this.#refusals[this.#next] = {
      at,
      id,
      requestId,
      client,
      route,
      status,
      reason,
      protocol,
      method: shortened(method),
      host: shortened(host),
      path: shortened(maskTokens(path)),
      subject: subject === undefined ? undefined : shortened(subject),
    };
    this.#next = (this.#next + 1) % RECENT_REFUSALS;
  }

  events(): RecentEvents {
    const current = Math.floor(this.#now() / MINUTE_MS);
    const first = current - RECENT_MINUTES + 1;
    const minutes = Array.from({ length: RECENT_MINUTES }, (_, index): RecentMinute => {
      const number = first + index;
      const kept = this.#minutes[number % RECENT_MINUTES];
      return read(kept?.number === number ? kept : emptyMinute(number));
    });
    return { minutes, refusals: newestFirst(this.#refusals) };
  }

  #minute(at: number): Minute {
    const number = Math.floor(at / MINUTE_MS);
    const minute = this.#minutes[number % RECENT_MINUTES];
    if (minute === undefined) throw new Error("the clock is before the epoch");
    if (minute.number !== number) {
      minute.number = number;
      minute.logins.clear();
      minute.refusals.clear();
    }
    return minute;
  }
}

function emptyMinute(number: number): Minute {
  return { number, logins: new Map(), refusals: new Map() };
}

function read({ number, logins, refusals }: Minute): RecentMinute {
  return {
    at: number * MINUTE_MS,
    logins: Object.fromEntries(logins),
    refusals: Object.fromEntries(refusals),
  };
}

function count(counts: Map<string, number>, word: string, more = 1): void {
  counts.set(word, (counts.get(word) ?? 0) + more);
}

/**
 * Truncates a text. Copies it, because a slice would keep the whole text in memory, which can be as long as a header.
 */
function shortened(text: string): string {
  return text.length <= LONGEST ? text : `${Buffer.from(text.slice(0, LONGEST)).toString()}…`;
}

function newestFirst(refusals: readonly RecentRefusal[]): RecentRefusal[] {
  return refusals.toSorted((a, b) => b.at - a.at || b.id - a.id).slice(0, RECENT_REFUSALS);
}

/** Merges the events of several threads. All use the same clock, but they may have been read in different minutes. */
export function mergeEvents(parts: readonly RecentEvents[]): RecentEvents {
  const minutes = new Map<number, Minute>();
  for (const { at, logins, refusals } of parts.flatMap((part) => part.minutes)) {
    const sum = minutes.get(at) ?? emptyMinute(at / MINUTE_MS);
    minutes.set(at, sum);
    for (const [word, more] of Object.entries(logins)) count(sum.logins, word, more);
    for (const [word, more] of Object.entries(refusals)) count(sum.refusals, word, more);
  }
  const sorted = [...minutes.values()].toSorted((a, b) => a.number - b.number);
  return {
    minutes: sorted.slice(-RECENT_MINUTES).map(read),
    refusals: newestFirst(parts.flatMap(({ refusals }) => refusals)),
  };
}

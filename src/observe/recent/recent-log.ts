import type { RecentEvents, RecentMinute, RecentRefusal } from "../../core/status.ts";
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

/** How long each of the two spans lasts that are counted, in seconds. */
const SPAN = 120;
/** Buckets for each doubling of the duration: a duration is known within 9 %. */
const PER_DOUBLING = 4;
/** The exponent of the first bucket: a quarter of a millisecond. */
const FIRST = -2 * PER_DOUBLING;
/** Up to an hour. */
const BUCKETS = 96;

/** Counts durations of the last two to four minutes, in buckets of a fixed number. Recording allocates nothing. */
class RecentDurations {
  #counts = new Uint32Array(BUCKETS);
  #before = new Uint32Array(BUCKETS);
  #spanEnds = 0;

  /** @param ms the duration. @param now of any clock, in whole seconds: small integers take no memory. */
  record(ms: number, now: number): void {
    if (!this.#isCurrent(now)) this.#turn(now);
    const exponent = ms > 0 ? Math.round(Math.log2(ms) * PER_DOUBLING) : FIRST;
    const bucket = Math.min(Math.max(exponent - FIRST, 0), BUCKETS - 1);
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
  }

  /** Returns the count of each bucket: plain data, which `merged` adds up. */
  counts(now: number): number[] {
    if (!this.#isCurrent(now)) this.#turn(now);
    return Array.from(this.#counts, (count, bucket) => count + (this.#before[bucket] ?? 0));
  }

  /** A clock may be set back, too. */
  #isCurrent(now: number): boolean {
    return now < this.#spanEnds && now >= this.#spanEnds - SPAN;
  }

  #turn(now: number): void {
    const isNext = now < this.#spanEnds + SPAN;
    [this.#before, this.#counts] = [this.#counts, this.#before.fill(0)];
    if (!isNext) this.#before.fill(0);
    this.#spanEnds = now + SPAN;
  }
}

/** Returns the duration in milliseconds that this part of all, from 0 to 1, did not exceed; undefined if none was counted. */
export function quantileOf(counts: readonly number[], part: number): number | undefined {
  const rank = Math.ceil(counts.reduce((sum, count) => sum + count, 0) * part);
  if (rank === 0) return undefined;
  let seen = 0;
  const bucket = counts.findIndex((count) => (seen += count) >= rank);
  return 2 ** ((bucket + FIRST) / PER_DOUBLING);
}

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
  readonly #routes = new Map<string, RecentDurations>();
  /** By upstream. */
  readonly #targets = new Map<string, Map<string, RecentDurations>>();
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

  /** Records how long a request took. WebSockets last as long as people like. @param now wall clock, in milliseconds. */
  requestFinished(outcome: Outcome, now: number): void {
    const second = Math.floor(now / 1_000);
    const { route, upstream, target, durationMs, upstreamMs, protocol } = outcome;
    if (protocol !== "websocket") durationsOf(this.#routes, route).record(durationMs, second);
    if (upstream === undefined || target === undefined || upstreamMs === undefined) return;
    const targets = entryOf(this.#targets, upstream, newMap);
    durationsOf(targets, target).record(upstreamMs, second);
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
    const now = this.#now();
    const current = Math.floor(now / MINUTE_MS);
    const first = current - RECENT_MINUTES + 1;
    const minutes = Array.from({ length: RECENT_MINUTES }, (_, index): RecentMinute => {
      const number = first + index;
      const kept = this.#minutes[number % RECENT_MINUTES];
      return read(kept?.number === number ? kept : emptyMinute(number));
    });
    const second = Math.floor(now / 1_000);
    const targets = [...this.#targets].flatMap(([upstream, each]) =>
      Array.from(each, ([target, durations]) => [`${upstream} ${target}`, durations] as const),
    );
    const durations = {
      routes: countsOf([...this.#routes], second),
      targets: countsOf(targets, second),
    };
    return { minutes, durations, refusals: newestFirst(this.#refusals) };
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

/** Names in use are few; reloads and lookups may bring others for as long as the process lives. */
const MOST_NAMES = 1_000;

function entryOf<Entry>(all: Map<string, Entry>, name: string, create: () => Entry): Entry {
  let entry = all.get(name);
  if (entry === undefined) {
    const [oldest] = all.size < MOST_NAMES ? [] : all.keys();
    if (oldest !== undefined) all.delete(oldest);
    all.set(name, (entry = create()));
  }
  return entry;
}

const newMap = (): Map<string, RecentDurations> => new Map();
const newDurations = (): RecentDurations => new RecentDurations();

function durationsOf(all: Map<string, RecentDurations>, name: string): RecentDurations {
  return entryOf(all, name, newDurations);
}

type Counts = ReadonlyMap<string, readonly number[]>;

function countsOf(all: readonly (readonly [string, RecentDurations])[], now: number): Counts {
  return new Map(all.map(([name, durations]) => [name, durations.counts(now)]));
}

function merged(parts: readonly Counts[]): Counts {
  const sums = new Map<string, readonly number[]>();
  for (const [name, counts] of parts.flatMap((part) => [...part])) {
    const sum = sums.get(name) ?? [];
    sums.set(
      name,
      counts.map((count, bucket) => count + (sum[bucket] ?? 0)),
    );
  }
  return sums;
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
    durations: {
      routes: merged(parts.map(({ durations }) => durations.routes)),
      targets: merged(parts.map(({ durations }) => durations.targets)),
    },
  };
}

import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Revocation } from "../core/revocation.ts";
import type { AttemptEnd, SharedOperation } from "../core/shared-parts.ts";
import type { Clock } from "../lib/clock.ts";
import { KEPT_EVENTS } from "./outbox.ts";
import { DEADLINE_MS, notUnderstood, script, type StateConnection } from "./state-connection.ts";
import { readEvent, type StateKeys, writeRevocation } from "./wire.ts";

/** Revocations or events per response. */
const PAGE = 500;
/** A limit on what a replica reads: a million revocations. A replica itself keeps at most a quarter of a million. */
const MOST_SYNC_PAGES = 2_000;

/**
 * Reads all revocations from the server.
 *
 * @param known the revocations of this replica.
 * @param take receives the revocations of the server.
 * @returns the revocations of this replica that the server lacks.
 */
async function missingRevocations(
  commands: StateConnection,
  key: string,
  known: readonly Revocation[],
  take: (revocations: readonly Revocation[]) => void,
): Promise<readonly Revocation[]> {
  const missing = new Map(known.map((each) => [writeRevocation(each), each]));
  for (let page = 0; page < MOST_SYNC_PAGES; page += 1) {
    // Pages start with the revocation that ends last. So revocations that end during the read do not shift the pages,
    // and new ones also arrive as events. A scan of the set would cost the server nine times as much.
    const [first, last] = [page * PAGE, page * PAGE + PAGE - 1];
    const answer = await commands.call("ZRANGE", key, String(first), String(last), "REV");
    const members = textsOf(answer);
    for (const member of members) missing.delete(member);
    const nowMs = Date.now();
    const events = members.map((member) => readEvent(member, nowMs));
    take(events.flatMap((event) => (event && "revocation" in event ? event.revocation : [])));
    if (members.length < PAGE) break;
  }
  return [...missing.values()];
}

/** Callbacks for the events of other replicas. */
export interface SharedListeners {
  /** @param agoMs how long ago the attempt ended, in milliseconds. */
  readonly attemptEnded: (end: AttemptEnd, agoMs: number) => void;
  readonly revoked: (revocations: readonly Revocation[]) => void;
}

const ID = /^(\d{1,15})-(\d{1,15})$/;
/** Before the first event. */
export const FIRST_ID = "0-0";

/** Whether the event `id` came after the event `other`. */
function isAfter(id: string, other: string): boolean {
  const [, ms = "0", place = "0"] = ID.exec(id) ?? [];
  const [, otherMs = "0", otherPlace = "0"] = ID.exec(other) ?? [];
  return ms === otherMs ? Number(place) > Number(otherPlace) : Number(ms) > Number(otherMs);
}

/** Returns a value that must be a list. @throws StateUnavailable for anything else. */
export function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw notUnderstood();
}

/** Returns a value that must be a list of texts. @throws StateUnavailable for anything else. */
export function textsOf(value: unknown): readonly string[] {
  return listOf(value).map((each) => {
    if (typeof each !== "string") throw notUnderstood();
    return each;
  });
}

/** Returns all current revocations of this replica. An emptied server must get them again. */
export type KnownRevocations = () => readonly Revocation[];

interface StateFeedOptions {
  readonly listeners: SharedListeners;
  readonly known: KnownRevocations;
  readonly keys: StateKeys;
  /** The mark of this replica's own events. */
  readonly own: string;
  readonly clock: Clock;
  /** Measures a question. `wait` is a question that waits for new events. */
  readonly measured: <Answer>(
    operation: SharedOperation | "wait",
    ask: () => Promise<Answer>,
  ) => Promise<Answer>;
  /** Called when the server is seen to have its data, or else may have lost what was stored last. */
  readonly checked: (hasAll: boolean) => void;
  /** Sends the server the revocations that it lacks. Resolves to whether all are stored. */
  readonly missing: (revocations: readonly Revocation[]) => Promise<boolean>;
}

/**
 * Checks that the server accepts writes, and returns its state. KEYS: probe, mark, events, revocations, filled. ARGV:
 * the mark to set if there is none, and the id of an event. Returns the mark, the id of that event (empty if it is not
 * there), and the mark up to which the server was refilled (empty if never).
 */
export const GREET = script(`
redis.call('SET', KEYS[1], '1', 'PX', 1000)
redis.call('SET', KEYS[2], ARGV[1], 'NX')
local time = redis.call('TIME')
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', time[1] * 1000 + math.floor(time[2] / 1000))
local last = redis.call('XRANGE', KEYS[3], ARGV[2], ARGV[2])
return { redis.call('GET', KEYS[2]), last[1] and last[1][1] or '', redis.call('GET', KEYS[5]) or '' }`);

/**
 * Reads events after an id. KEYS: events. ARGV: id, maximum. Returns the server's time in milliseconds, and the
 * events.
 */
const EVENTS_AFTER = script(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return { string.format('%.0f', now), redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', ARGV[2]) }`);

/** How long the server waits for events before it answers that there are none, in milliseconds. */
const BLOCK_MS = 2_000;
/**
 * The pause after each response, in milliseconds: a replica reads at most 10 times a second, however many
 * events there are. With 20 ms, a thousand replicas of a million users would need more than the one core that the
 * server uses (docs/scale.md).
 */
const REST_MS = 100;
/** How often to check whether the server was emptied, in milliseconds. */
const GREET_MS = 5_000;
/** How long a replica may take to refill an emptied server before another one does, in milliseconds. */
const FILL_MS = 10_000;
/** The maximum number of pages to read when catching up. The server keeps fewer events. */
const MOST_PAGES = 100;

/** Receives the events of other replicas: each event once, in order, across lost connections. */
export class StateFeed {
  readonly #options: StateFeedOptions;
  /** The id of the last event that was read. */
  #after = FIRST_ID;
  #mark: string | undefined;

  constructor(options: StateFeedOptions) {
    this.#options = options;
  }

  /**
   * Reads everything that this replica has missed.
   *
   * @param moved whether this is a different server than last time, after a failover.
   * @throws StateUnavailable
   */
  async catchUp(commands: StateConnection, moved: boolean): Promise<void> {
    await this.#greet(commands, !moved);
    if (moved) await this.#rejoin(commands);
    const { keys, measured } = this.#options;
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const answer = await measured("read", () =>
        commands.run(EVENTS_AFTER, [keys.events], [this.#after, String(PAGE)]),
      );
      const [now, entries] = listOf(answer);
      const nowMs = Number(now);
      if (!Number.isFinite(nowMs)) throw notUnderstood();
      this.#deliver(entries, nowMs);
      if (listOf(entries).length < PAGE) return;
    }
  }

  /** Reads events until the signal is aborted. @throws StateUnavailable */
  async follow(
    commands: StateConnection,
    reading: StateConnection,
    signal: AbortSignal,
  ): Promise<void> {
    const { keys, clock, measured } = this.#options;
    let greetedAt = clock.monotonic();
    while (!signal.aborted) {
      const block = ["BLOCK", String(BLOCK_MS), "STREAMS", keys.events, this.#after];
      const answer = await measured("wait", () =>
        reading.callWithin(BLOCK_MS + DEADLINE_MS, "XREAD", "COUNT", String(PAGE), ...block),
      );
      if (answer !== null) {
        for (const stream of listOf(answer)) this.#deliver(listOf(stream)[1], undefined);
      }
      await sleep(REST_MS, undefined, { ref: false });
      if (clock.monotonic() - greetedAt < GREET_MS) continue;
      greetedAt = clock.monotonic();
      await this.#greet(commands, false);
    }
  }

  /** Merges the revocations of the server and of this replica, if either may have missed some. */
  async #greet(commands: StateConnection, cutOff: boolean): Promise<void> {
    const { keys, measured, listeners } = this.#options;
    const { probe, mark, events, revocations, filled } = keys;
    const candidate = randomBytes(9).toString("base64url");
    const greet = () =>
      commands.run(GREET, [probe, mark, events, revocations, filled], [candidate, this.#after]);
    const [found = "", last, told] = textsOf(await measured("connect", greet));
    this.#options.checked(found === this.#mark && !cutOff);
    if (found === this.#mark) {
      // Without the last event that was read, it has dropped events, or lost its latest writes (an older snapshot).
      if (cutOff && last === "") await this.#rejoin(commands);
      return;
    }
    // If the server was emptied, its stream contains everything published since.
    const known = this.#options.known();
    const isFilled = told === found || known.length === 0;
    const fills = !isFilled && (await this.#mayFill(commands));
    if (fills || this.#mark === undefined || known.length > KEPT_EVENTS) {
      const missing = await missingRevocations(commands, revocations, known, listeners.revoked);
      if (fills) void this.#fill(commands, missing, found);
    }
    // Otherwise the next round checks again, since the replica that refills it may fail.
    if (isFilled || fills) this.#mark = found;
  }

  /**
   * Continues on another server after a failover, or on one that was restored. Servers replicate asynchronously: this one
   * may lack what its predecessor accepted last.
   */
  async #rejoin(commands: StateConnection): Promise<void> {
    const { keys, measured, missing, known, listeners } = this.#options;
    const newest = await measured("read", () =>
      commands.call("XREVRANGE", keys.events, "+", "-", "COUNT", "1"),
    );
    const [last] = listOf(newest);
    const id = last === undefined ? FIRST_ID : String(listOf(last)[0]);
    if (isAfter(this.#after, id)) this.#after = id;
    const { revoked } = listeners;
    const lacking = await missingRevocations(commands, keys.revocations, known(), revoked);
    if (lacking.length > 0) void missing(lacking);
  }

  /**
   * Claims the right to refill an emptied server. Only one replica should: a thousand would send the same
   * revocations.
   */
  async #mayFill(commands: StateConnection): Promise<boolean> {
    const claim = [this.#options.own, "NX", "PX", String(FILL_MS)];
    return (await commands.call("SET", this.#options.keys.filling, ...claim)) !== null;
  }

  async #fill(
    commands: StateConnection,
    missing: readonly Revocation[],
    mark: string,
  ): Promise<void> {
    const { keys, missing: send } = this.#options;
    const filled = send(missing).then(
      (stored) => stored && commands.call("SET", keys.filled, mark),
    );
    // A replica tries again once the claim has expired.
    if (!(await filled.catch(() => false))) this.#mark = "";
  }

  /**
   * Passes the events of a stream to the listeners, except our own.
   *
   * @param nowMs the server's time; undefined for events that have just arrived.
   * @throws StateUnavailable for anything but events.
   */
  #deliver(entries: unknown, nowMs: number | undefined): void {
    const { attemptEnded, revoked } = this.#options.listeners;
    let last = this.#after;
    const revocations: Revocation[] = [];
    for (const entry of listOf(entries)) {
      const [id, fields] = listOf(entry);
      const [, ms] = typeof id === "string" ? (ID.exec(id) ?? []) : [];
      if (typeof id !== "string" || ms === undefined) throw notUnderstood();
      last = id;
      const [, from, , text] = listOf(fields);
      if (from === this.#options.own) continue;
      const event = readEvent(text, Date.now());
      if (event === undefined) continue;
      if ("revocation" in event) revocations.push(event.revocation);
      else attemptEnded(event.attempt, Math.max(0, (nowMs ?? Number(ms)) - Number(ms)));
    }
    if (revocations.length > 0) revoked(revocations);
    this.#after = last;
  }
}

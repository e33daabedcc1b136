import { createHmac, hash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../core/log.ts";
import type { Observer } from "../core/observer.ts";
import type {
  AttemptEnd,
  RememberProof,
  SettleConcurrency,
  SettleRates,
  SharedOperation,
  ShareRevocations,
} from "../core/shared-parts.ts";
import { withTimeout } from "../lib/async/with-timeout.ts";
import type { Clock } from "../lib/clock.ts";
import { type KnownRevocations, type SharedListeners, StateFeed, textsOf } from "./state-feed.ts";
import { Outbox } from "./outbox.ts";
import { locate, type StatePlace, type StateServer } from "./state-server.ts";
import {
  DEADLINE_MS,
  script,
  StateConnection,
  StateUnavailable,
  whyUnavailable,
} from "./state-connection.ts";
import { keysFor, type StateKeys } from "./wire.ts";
import { Outage } from "../lib/outage.ts";

/** Keys per question to the server. */
const AT_ONCE = 200;

/**
 * Adds up the spending of replicas on rate limits, by the generic cell rate algorithm. KEYS: one for each caller of a
 * limit. ARGV: the spending of each, in milliseconds. Returns for each the milliseconds until all of it is paid back.
 */
const SETTLE = script(`
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local behind = {}
for i, key in ipairs(KEYS) do
  local due = math.max(tonumber(redis.call('GET', key) or '0'), now) + tonumber(ARGV[i])
  redis.call('SET', key, string.format('%.3f', due), 'PX', math.ceil(due - now) + 1000)
  behind[i] = string.format('%.3f', due - now)
end
return behind`);

/** How long a count of requests in flight stays valid, in milliseconds: replicas repeat it every 2 s. */
const IN_FLIGHT_MS = 5_000;

/**
 * Stores how many requests a replica has in flight, and drops the counts of replicas that have died. KEYS: for each
 * caller of a limit, the counts and their times. ARGV: the replica; then its count for each caller. Returns for each
 * caller how many requests the other replicas have in flight. The field with the empty name contains the sum, so the
 * cost does not depend on the number of replicas.
 */
const SETTLE_CONCURRENCY = script(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local elsewhere = {}
local function set(counts, told, who, requests)
  local before = tonumber(redis.call('HGET', counts, who) or '0')
  if requests > 0 then
    redis.call('HSET', counts, who, requests)
    redis.call('ZADD', told, now, who)
  elseif before > 0 then
    redis.call('HDEL', counts, who)
    redis.call('ZREM', told, who)
  end
  if requests ~= before then return redis.call('HINCRBY', counts, '', requests - before) end
  return tonumber(redis.call('HGET', counts, '') or '0')
end
for i = 2, #ARGV do
  local counts, told = KEYS[2 * i - 3], KEYS[2 * i - 2]
  for _, gone in ipairs(redis.call('ZRANGEBYSCORE', told, '-inf', now - ${IN_FLIGHT_MS}, 'LIMIT', 0, 100)) do
    set(counts, told, gone, 0)
  end
  local requests = tonumber(ARGV[i])
  local all = set(counts, told, ARGV[1], requests)
  if all > 0 then
    redis.call('PEXPIRE', counts, ${2 * IN_FLIGHT_MS})
    redis.call('PEXPIRE', told, ${2 * IN_FLIGHT_MS})
  else
    redis.call('DEL', counts, told)
  end
  elsewhere[i - 1] = tostring(all - requests)
end
return elsewhere`);

export interface SharedStateOptions {
  readonly place: StatePlace;
  readonly prefix: string;
  /** The longest that a request waits for the server, in milliseconds. */
  readonly timeout: number;
  readonly log: Log;
  readonly clock: Clock;
  readonly observer: Pick<Observer, "sharedStateAsked">;
}

/** How long a start waits for the data of other replicas, in milliseconds. */
const START_MS = 1_000;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 2_000;

/**
 * The state that replicas share through one server: results of login attempts, revocations, and the counts of limits.
 * Each replica has a full copy and decides on its own. The server passes events on, and keeps them for replicas that
 * start later.
 */
export class SharedState {
  readonly #options: SharedStateOptions;
  readonly #keys: StateKeys;
  readonly #secret: Buffer;
  readonly #outage: Outage;
  readonly #outbox: Outbox;
  readonly #closing = new AbortController();
  /** The mark of this replica's own counts. */
  readonly #own = randomBytes(9).toString("base64url");
  /** Defined while the server can be used. */
  #commands: StateConnection | undefined;
  /** The server of the last session that began. */
  #server: StateServer | undefined;
  #failure: unknown;
  #running: Promise<void> | undefined;

  constructor(options: SharedStateOptions) {
    const { prefix, place } = options;
    this.#options = options;
    this.#keys = keysFor(prefix);
    const { password = "" } = place.server;
    this.#secret = Buffer.from(hash("sha256", `sallyport\0${prefix}\0${password}`, "hex"), "hex");
    this.#outage = new Outage(options.clock);
    this.#outbox = new Outbox(this.#keys, this.#own);
  }

  get up(): boolean {
    return this.#commands !== undefined;
  }

  /** Since when it cannot be used, in milliseconds since the epoch; undefined if it can. */
  get failingSince(): number | undefined {
    return this.#outage.since;
  }

  /** The number of login attempts that were not published to other replicas. */
  get lost(): number {
    return this.#outbox.lost;
  }

  /**
   * Connects, and reconnects whenever the connection is lost. Resolves when this replica has caught up, or after a
   * second.
   */
  async begin(listeners: SharedListeners, known: KnownRevocations): Promise<void> {
    const feed = new StateFeed({
      listeners,
      known,
      own: this.#own,
      keys: this.#keys,
      clock: this.#options.clock,
      measured: (operation, ask) => this.#measured(operation, ask),
      checked: (hasAll) => {
        if (hasAll) return this.#outbox.confirm();
        this.#outbox.repeat();
        this.#flush();
      },
      missing: (revocations) => {
        const stored = this.#outbox.addRevocations(revocations);
        this.#flush();
        return stored;
      },
    });
    const first = Promise.withResolvers<void>();
    this.#running = this.#run(feed, first.resolve);
    await withTimeout(first.promise, START_MS, undefined);
  }

  /**
   * Returns a digest that is the same in all replicas, and meaningless to anyone who does not know the server's
   * password.
   */
  readonly digest = (text: string): string =>
    createHmac("sha256", this.#secret).update(text).digest("base64url");

  readonly tell = (end: AttemptEnd): void => {
    this.#outbox.addAttempt(end);
    this.#flush();
  };

  readonly revoke: ShareRevocations = async (revocations) => {
    const stored = this.#outbox.addRevocations(revocations);
    if (!this.#flush()) return false;
    return withTimeout(stored, this.#options.timeout, false);
  };

  readonly rememberProof: RememberProof = async (name, forMs) => {
    const commands = this.#commands;
    if (commands === undefined) return undefined;
    const key = this.#keys.proof(this.digest(name));
    const asked = this.#measured("remember", () =>
      commands.call("SET", key, "", "NX", "PX", String(Math.ceil(forMs))),
    );
    const isNew = asked.then((answer) => answer !== null).catch(() => undefined);
    return withTimeout(isNew, this.#options.timeout, undefined);
  };

  /** Adds up the spending of all replicas. */
  readonly settleRates: SettleRates = (spendings) =>
    this.#inPieces(spendings, (commands, some) => {
      const names = some.map(({ key }) => this.#keys.rate(this.digest(key)));
      const costs = some.map(({ costMs }) => costMs.toFixed(3));
      return commands.run(SETTLE, names, costs);
    });

  /** Adds up the requests in flight of all replicas. */
  readonly settleConcurrency: SettleConcurrency = async (counts) => {
    const elsewhere = await this.#inPieces(counts, (commands, some) => {
      const names = some.flatMap(({ key }) => this.#keys.inFlight(this.digest(key)));
      const requests = some.map((each) => String(each.requests));
      return commands.run(SETTLE_CONCURRENCY, names, [this.#own, ...requests]);
    });
    return elsewhere?.map((each) => (Number.isSafeInteger(each) && each > 0 ? each : 0));
  };

  /**
   * Asks in batches.
   *
   * @returns a number for each item, in the same order; undefined if the server gives no valid answer.
   */
  async #inPieces<Item>(
    items: readonly Item[],
    ask: (commands: StateConnection, some: readonly Item[]) => Promise<unknown>,
  ): Promise<readonly number[] | undefined> {
    const numbers: number[] = [];
    for (let start = 0; start < items.length; start += AT_ONCE) {
      const commands = this.#commands;
      if (commands === undefined) return undefined;
      const some = items.slice(start, start + AT_ONCE);
      try {
        const answer = await this.#measured("settle", () => ask(commands, some));
        numbers.push(...textsOf(answer).map(Number));
      } catch {
        return undefined;
      }
      // With the wrong number of results, some would be assigned to the wrong keys.
      if (numbers.length !== start + some.length) return undefined;
    }
    return numbers;
  }

  async close(): Promise<void> {
    // Publishes what is still in the outbox.
    if (this.#commands !== undefined) await withTimeout(this.#send(), DEADLINE_MS, undefined);
    this.#closing.abort();
    this.#commands?.close();
    await this.#running;
  }

  /** @returns whether there is a server to send to. */
  #flush(): boolean {
    if (this.#commands === undefined) return false;
    void this.#send();
    return true;
  }

  #send(): Promise<void> {
    return this.#outbox.send((publish) => {
      const commands = this.#commands;
      if (commands === undefined) return Promise.reject(new StateUnavailable("no connection"));
      return this.#measured("publish", () => publish(commands));
    });
  }

  async #run(feed: StateFeed, caughtUp: () => void): Promise<void> {
    const { signal } = this.#closing;
    const { log } = this.#options;
    let waitMs = FIRST_WAIT_MS;
    while (!signal.aborted) {
      this.#failure = undefined;
      await this.#session(feed, () => {
        waitMs = FIRST_WAIT_MS;
        caughtUp();
      }).catch((error: unknown) => (this.#failure ??= error));
      if (signal.aborted) return;
      if (this.#outage.failed() !== undefined) {
        const reason = whyUnavailable(this.#failure);
        log.warn("the state server cannot be used, each replica counts for itself", { reason });
      }
      // All replicas lose the server at the same time, and must not come back at the same time.
      const wait = waitMs * (0.5 + Math.random());
      waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS);
      await sleep(wait, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  /** Runs one session with the server. Rejects with the reason when the connection ends. */
  async #session(feed: StateFeed, begun: () => void): Promise<void> {
    using open = new DisposableStack();
    const { place, log } = this.#options;
    const server = await this.#measured("connect", () =>
      locate(place, this.#keys.probe, DEADLINE_MS),
    );
    const connect = async (): Promise<StateConnection> => {
      const connection = await this.#measured("connect", () =>
        StateConnection.open(server, DEADLINE_MS),
      );
      open.defer(() => connection.close());
      return connection;
    };
    const commands = await connect();
    const reading = await connect();
    const end = (): void => reading.close();
    commands.onClose(end);
    this.#closing.signal.addEventListener("abort", end, { once: true });
    open.defer(() => this.#closing.signal.removeEventListener("abort", end));
    const before = this.#server;
    const { host, port } = before ?? server;
    await feed.catchUp(commands, host !== server.host || port !== server.port);
    this.#server = server;
    this.#commands = commands;
    open.defer(() => (this.#commands = undefined));
    const ended = this.#outage.succeeded();
    if (ended !== undefined) {
      const { seconds } = ended;
      log.info("the state server can be used again", { seconds, lost: this.lost });
    }
    begun();
    this.#flush();
    await feed.follow(commands, reading, this.#closing.signal);
  }

  /** Measures a question. The first failure of a session is the cause of its end; later ones are consequences. */
  async #measured<Answer>(
    operation: SharedOperation | "wait",
    ask: () => Promise<Answer>,
  ): Promise<Answer> {
    const { clock, observer } = this.#options;
    const began = clock.monotonic();
    const tell = (successful: boolean): void => {
      if (this.#closing.signal.aborted) return;
      const seconds = (clock.monotonic() - began) / 1000;
      if (operation === "wait") observer.sharedStateAsked("read", successful);
      else observer.sharedStateAsked(operation, successful, seconds);
    };
    try {
      const answer = await ask();
      tell(true);
      return answer;
    } catch (error) {
      this.#failure ??= error;
      tell(false);
      throw error;
    }
  }
}

import type { Revocation } from "../core/revocation.ts";
import type { AttemptEnd } from "../core/shared-parts.ts";
import { script, type StateConnection } from "./state-connection.ts";
import { endOf, type StateKeys, writeRevocation } from "./wire.ts";
import { callEach } from "../lib/async/isolation.ts";

export function writeAttempt({ failed, account, pair, network, known }: AttemptEnd): string {
  return JSON.stringify({ attempt: [failed ? 1 : 0, known ? 1 : 0, account, pair, network] });
}

/** How long the server keeps events for replicas that start later, in milliseconds after the last event. */
const KEPT_MS = 24 * 3_600_000;
/** How many events the server keeps, approximately: 3 MB. */
export const KEPT_EVENTS = 10_000;
/** Events per batch. */
const AT_ONCE = 200;
/** How many events wait at most while the server is unavailable. */
const MOST_ATTEMPTS = 1_000;
const MOST_REVOCATIONS = 250_000;
/** How many revocations are sent again, at most, when the server may have lost them. */
const MOST_REPEATED = 1_000;

/**
 * Publishes events to all replicas. KEYS: events. ARGV: milliseconds to keep, maximum events, sender; then the
 * events.
 */
const TELL = script(`
for i = 4, #ARGV do
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'from', ARGV[3], 'event', ARGV[i])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return #ARGV`);

/**
 * Stores revocations until their tokens have expired, and publishes them to all replicas. KEYS: events, revocations.
 * ARGV: as for TELL, but each revocation follows its end, in milliseconds since the epoch.
 */
const REVOKE = script(`
for i = 4, #ARGV, 2 do
  redis.call('ZADD', KEYS[2], ARGV[i], ARGV[i + 1])
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'from', ARGV[3], 'event', ARGV[i + 1])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
redis.call('PEXPIREAT', KEYS[2], string.format('%.0f', last[2] + 1000))
return #ARGV`);

type Publish = (commands: StateConnection) => Promise<unknown>;

interface Waiting {
  readonly revocation: Revocation;
  /** @param isStored false if it was dropped, since too many wait. */
  readonly settle: (isStored: boolean) => void;
}

/**
 * Events to publish to other replicas. A revocation is sent repeatedly until it is stored, since a second copy changes
 * nothing. A login attempt is sent only once: a failed batch is lost, but no attempt counts twice.
 */
export class Outbox {
  readonly #keys: StateKeys;
  readonly #limits: readonly string[];
  #attempts: string[] = [];
  #revocations: Waiting[] = [];
  /** The last revocations that were stored since the server was last seen to have its data, and those before them. */
  #stored: Revocation[] = [];
  #storedBefore: Revocation[] = [];
  #sending: Promise<void> | undefined;
  #lost = 0;

  /** @param own the mark of this replica's own events. */
  constructor(keys: StateKeys, own: string) {
    this.#keys = keys;
    this.#limits = [String(KEPT_MS), String(KEPT_EVENTS), own];
  }

  /** The number of login attempts that were dropped. */
  get lost(): number {
    return this.#lost;
  }

  addAttempt(end: AttemptEnd): void {
    if (this.#attempts.length >= MOST_ATTEMPTS) {
      this.#attempts.shift();
      this.#lost += 1;
    }
    this.#attempts.push(writeAttempt(end));
  }

  /** Resolves to true when the server has stored all of them; to false when one was dropped, since too many wait. */
  async addRevocations(revocations: readonly Revocation[]): Promise<boolean> {
    const stored = revocations.map((revocation) => {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      this.#revocations.push({ revocation, settle: resolve });
      return promise;
    });
    const surplus = Math.max(0, this.#revocations.length - MOST_REVOCATIONS);
    for (const { settle } of this.#revocations.splice(0, surplus)) settle(false);
    return (await Promise.all(stored)).every(Boolean);
  }

  /** The server has its data: others have had time to read what was stored before its last check. */
  confirm(): void {
    this.#storedBefore = this.#stored;
    this.#stored = [];
  }

  /** Sends again what was stored last: the server may have lost it before anybody else has read it. */
  repeat(): void {
    const again = [...this.#storedBefore, ...this.#stored];
    this.#storedBefore = [];
    this.#stored = [];
    void this.addRevocations(again);
  }

  /** Sends everything in batches, and stops at the first batch that fails. Never rejects. */
  send(through: (publish: Publish) => Promise<unknown>): Promise<void> {
    this.#sending ??= this.#sendAll(through)
      .catch(() => undefined)
      .finally(() => (this.#sending = undefined));
    return this.#sending;
  }

  async #sendAll(through: (publish: Publish) => Promise<unknown>): Promise<void> {
    while (this.#revocations.length > 0 || this.#attempts.length > 0) {
      if (this.#revocations.length > 0) await this.#sendRevocations(through);
      else await this.#sendAttempts(through);
    }
  }

  async #sendRevocations(through: (publish: Publish) => Promise<unknown>): Promise<void> {
    const some = this.#revocations.splice(0, AT_ONCE);
    const keys = [this.#keys.events, this.#keys.revocations];
    const args = some.flatMap(({ revocation }) => [
      String(endOf(revocation.until)),
      writeRevocation(revocation),
    ]);
    try {
      await through((commands) => commands.run(REVOKE, keys, [...this.#limits, ...args]));
    } catch (error) {
      this.#revocations.unshift(...some);
      throw error;
    }
    const stored = some.map(({ revocation }) => revocation);
    this.#stored = [...this.#stored, ...stored].slice(-MOST_REPEATED);
    callEach(some, ({ settle }) => settle(true));
  }

  async #sendAttempts(through: (publish: Publish) => Promise<unknown>): Promise<void> {
    const some = this.#attempts.splice(0, AT_ONCE);
    try {
      await through((commands) =>
        commands.run(TELL, [this.#keys.events], [...this.#limits, ...some]),
      );
    } catch (error) {
      this.#lost += some.length;
      throw error;
    }
  }
}

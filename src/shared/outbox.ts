import type { Revocation } from "../core/revocation.ts";
import type { AttemptEnd } from "../core/shared-parts.ts";
import { REVOKE, TELL } from "./scripts.ts";
import type { StateConnection } from "./state-connection.ts";
import { endOf, type StateKeys, writeAttempt, writeRevocation } from "./wire.ts";
import { callEach } from "../lib/async/isolation.ts";

/** How long the server keeps events for replicas that start later, in milliseconds after the last event. */
const KEPT_MS = 24 * 3_600_000;
/** How many events the server keeps, approximately: 3 MB. */
export const KEPT_EVENTS = 10_000;
/** Events per batch. */
const AT_ONCE = 200;
/** How many events wait at most while the server is unavailable. */
const MOST_ATTEMPTS = 1_000;
const MOST_REVOCATIONS = 250_000;

type Publish = (commands: StateConnection) => Promise<unknown>;

interface Waiting {
  readonly revocation: Revocation;
  readonly stored: () => void;
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

  /** Resolves to true when the server has stored all of them. */
  async addRevocations(revocations: readonly Revocation[]): Promise<true> {
    const stored = revocations.map((revocation) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#revocations.push({ revocation, stored: resolve });
      return promise;
    });
    if (this.#revocations.length > MOST_REVOCATIONS) {
      this.#revocations = this.#revocations.slice(-MOST_REVOCATIONS);
    }
    await Promise.all(stored);
    return true;
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
    callEach(some, ({ stored }) => stored());
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

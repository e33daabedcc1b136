import type { Clock } from "../../lib/clock.ts";

/** Maximum number of remembered tokens, for all clients and for one client. Each takes about 200 bytes. */
const MOST = 10_000;
const MOST_OF_CLIENT = 1_000;

interface Refused {
  readonly client: string;
  /** Monotonic, milliseconds. */
  readonly until: number;
}

/**
 * Remembers refused tokens for a while. A client that sends many invalid tokens evicts its own before those of others.
 */
export class RefusedTokens {
  readonly #clock: Clock;
  /** By digest, oldest first. */
  readonly #tokens = new Map<string, Refused>();
  readonly #byClient = new Map<string, Set<string>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#tokens.size;
  }

  has(digest: string): boolean {
    const found = this.#tokens.get(digest);
    if (found === undefined) return false;
    if (this.#clock.monotonic() < found.until) return true;
    this.#forget(digest);
    return false;
  }

  /** @param client the client that sent the token. @param forMs how long to remember it, in milliseconds. */
  add(digest: string, client: string, forMs: number): void {
    this.#forget(digest);
    const own = this.#byClient.get(client) ?? new Set();
    if (own.size >= MOST_OF_CLIENT) this.#forgetFirst(own);
    else if (this.#tokens.size >= MOST) this.#forgetFirst(this.#tokens.keys());
    this.#tokens.set(digest, { client, until: this.#clock.monotonic() + forMs });
    own.add(digest);
    this.#byClient.set(client, own);
  }

  #forgetFirst(digests: Iterable<string>): void {
    for (const oldest of digests) {
      this.#forget(oldest);
      return;
    }
  }

  #forget(digest: string): void {
    const found = this.#tokens.get(digest);
    if (found === undefined) return;
    this.#tokens.delete(digest);
    const own = this.#byClient.get(found.client);
    own?.delete(digest);
    if (own?.size === 0) this.#byClient.delete(found.client);
  }
}

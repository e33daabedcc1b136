import type { Clock } from "../../lib/clock.ts";

/** Refused tokens that are remembered, each some 200 bytes: of all clients, and of one. */
const MOST = 10_000;
const MOST_OF_CLIENT = 1_000;

interface Refused {
  readonly client: string;
  /** Monotonic, milliseconds. */
  readonly until: number;
}

/** Remembers refused tokens for a while. A client that sends garbage pushes out its own before those of others. */
export class RefusedTokens {
  readonly #clock: Clock;
  /** By digest, the oldest first. */
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

  /** @param client whose token it was. @param forMs how long it is remembered. */
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

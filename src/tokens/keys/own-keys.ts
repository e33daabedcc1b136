import type { Clock } from "../../lib/clock.ts";
import {
  type KeyRing,
  keysAt,
  type KeysInForce,
  type OwnKey,
  type SigningKeys,
} from "./key-ring.ts";
import { callEach } from "../../lib/async/isolation.ts";

/**
 * Our own keys, which depend on the time: each read may return other keys. Their owner replaces them: it is the thread that reads the files, or one that receives the keys from it.
 */
export class OwnKeys implements SigningKeys {
  readonly #clock: Clock;
  readonly #listeners = new Set<() => void>();
  #ring: KeyRing;
  #inForce: KeysInForce;

  constructor(ring: KeyRing, clock: Clock) {
    this.#clock = clock;
    this.#ring = ring;
    this.#inForce = keysAt(ring, clock.now());
  }

  /** Can be posted to another thread to create the same keys there. */
  get ring(): KeyRing {
    return this.#ring;
  }

  /** The key that signs, with its times. */
  get signer(): OwnKey | undefined {
    const kid = this.signing?.kid;
    return this.#ring.find((key) => key.kid === kid);
  }

  get signing(): SigningKeys["signing"] {
    return this.#now().signing;
  }

  get verification(): SigningKeys["verification"] {
    return this.#now().verification;
  }

  /** When the next key starts or stops to be used, in milliseconds since the epoch; Infinity if none will. */
  get changesAt(): number {
    this.#now();
    return this.#inForce.until;
  }

  replace(ring: KeyRing): void {
    this.#ring = ring;
    this.#inForce = keysAt(ring, this.#clock.now());
    callEach(this.#listeners, (listener) => listener());
  }

  /**
   * Calls back when the keys or their times are replaced, but not when one of these times comes.
   *
   * @returns a function that ends the subscription.
   */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #now(): SigningKeys {
    const now = this.#clock.now();
    const { from, until } = this.#inForce;
    if (now < from || now >= until) this.#inForce = keysAt(this.#ring, now);
    return this.#inForce;
  }
}

import { createHmac, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../lib/clock.ts";
import { derivedKey, type SigningKeys } from "../keys/key-ring.ts";

/** A nonce counts in the slot in which it was made, and in the next one, in milliseconds. */
const SLOT_MS = 120_000;

/** The nonces for proofs (RFC 9449 §9): nothing is stored, and all threads and replicas with the same keys make the same. */
export class Nonces {
  readonly #keys: Pick<SigningKeys, "signing">;
  readonly #clock: Clock;

  constructor(keys: Pick<SigningKeys, "signing">, clock: Clock) {
    this.#keys = keys;
    this.#clock = clock;
  }

  /** Returns the nonce for now; undefined if no key signs. */
  current(): string | undefined {
    return this.#made(this.#slot())?.toString("base64url");
  }

  /** Returns when a nonce ends, in milliseconds since the epoch; undefined if it is not one of ours, or has ended. */
  endOf(nonce: string): number | undefined {
    const sent = Buffer.from(nonce, "base64url");
    const slot = this.#slot();
    const found = [slot, slot - 1].find((each) => {
      const made = this.#made(each);
      return made?.length === sent.length && timingSafeEqual(made, sent);
    });
    return found && (found + 2) * SLOT_MS;
  }

  #slot(): number {
    return Math.floor(this.#clock.now() / SLOT_MS);
  }

  #made(slot: number): Buffer | undefined {
    const { signing } = this.#keys;
    if (signing === undefined) return undefined;
    return createHmac("sha256", derivedKey(signing.key, "DPoP nonce"))
      .update(String(slot))
      .digest();
  }
}

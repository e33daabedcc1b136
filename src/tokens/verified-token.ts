import type { LRUCache } from "lru-cache";
import type { Identity } from "../core/identity.ts";
import type { VerificationKey } from "./key-set.ts";

/** A token that was verified, and with which key. */
export class VerifiedToken {
  readonly identity: Identity;
  readonly #ends: number;
  /** The key as it is known now. */
  #key: VerificationKey;
  /** Until when it is accepted, milliseconds since the epoch: its own end, or that of its key when that is earlier. */
  until: number;

  constructor(identity: Identity, ends: number, key: VerificationKey) {
    this.identity = identity;
    this.#ends = ends;
    this.#key = key;
    this.until = Math.min(ends, key.until ?? Infinity);
  }

  get key(): VerificationKey {
    return this.#key;
  }

  /** Goes on with the same key, which may have got another end. */
  goOnWith(key: VerificationKey): void {
    this.#key = key;
    this.until = Math.min(this.#ends, key.until ?? Infinity);
  }
}

/**
 * Forgets every token whose key is not among those of its issuer any more; all others stay, with the end that their key
 * has now. In place, so the order in which they are forgotten for want of room stays as well.
 * @param keysOf the keys of an issuer.
 */
export function keepProven(
  verified: LRUCache<string, VerifiedToken>,
  keysOf: (issuer: string) => readonly VerificationKey[] | undefined,
): void {
  // Thousands of tokens have few keys.
  const successors = new Map<VerificationKey, VerificationKey | undefined>();
  const successorOf = ({ identity, key }: VerifiedToken): VerificationKey | undefined => {
    if (!successors.has(key)) {
      successors.set(
        key,
        keysOf(identity.issuer)?.find((other) => isSame(key, other)),
      );
    }
    return successors.get(key);
  };
  for (const [digest, token] of [...verified.entries()]) {
    const key = successorOf(token);
    if (key === undefined) verified.delete(digest);
    else token.goOnWith(key);
  }
}

function isSame(one: VerificationKey, other: VerificationKey): boolean {
  return (
    one.kid === other.kid &&
    one.algorithms.length === other.algorithms.length &&
    one.algorithms.every((name) => other.algorithms.includes(name)) &&
    one.key.equals(other.key)
  );
}

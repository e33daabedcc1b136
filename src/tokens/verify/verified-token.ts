import type { LRUCache } from "lru-cache";
import type { ClaimScalar, Identity } from "../../core/request/identity.ts";
import type { TokenRefusal, TokenVerdict } from "../../core/request/token-verifier.ts";
import type { Revocations } from "../../core/revocation.ts";
import type { VerificationKey } from "../keys/key-set.ts";

/** A token that was verified, and with which key. */
export class VerifiedToken {
  readonly identity: Identity;
  /** The key as it is known now; undefined if another server has vouched for the token. */
  #key: VerificationKey | undefined;
  /** Until when it is accepted, milliseconds since the epoch: its own end, or that of its key when that is earlier. */
  until: number;
  /** The version of the revocations that the token was last checked against; NaN for never. */
  #judgedIn = NaN;
  #fault: TokenRefusal | undefined;

  /** @param until when it is looked at again in any case, milliseconds since the epoch. */
  constructor(identity: Identity, key: VerificationKey | undefined, until = Infinity) {
    this.identity = identity;
    this.#key = key;
    this.until = Math.min(identity.acceptedUntil, key?.until ?? Infinity, until);
  }

  get key(): VerificationKey | undefined {
    return this.#key;
  }

  /** The caller, unless the token is revoked. */
  verdict(revocations: Revocations): TokenVerdict {
    if (this.#judgedIn !== revocations.version) {
      this.#judgedIn = revocations.version;
      const { identity: caller } = this;
      const by = revocations.covering(caller);
      this.#fault = by && { step: "revocation", reason: "revoked", revoked: { caller, by } };
    }
    return this.#fault ?? this.identity;
  }

  /** Updates the key, whose expiry may have changed. */
  goOnWith(key: VerificationKey): void {
    this.#key = key;
    this.until = Math.min(this.identity.acceptedUntil, key.until ?? Infinity);
  }
}

/** What a remembered token takes without its groups: the entry, the identity, and the other claims. */
const ENTRY_BYTES = 900;
/**
 * The memory of a group in addition to its characters, which are kept twice: in the claims, and in a header for the
 * backend.
 */
const GROUP_BYTES = 36;

/** The memory of a kept claim in addition to its value: a map entry, and a possible header. */
const CLAIM_BYTES = 150;

/** An estimate of the memory that a remembered token takes, in bytes: 17 KB for 200 groups of 25 characters, as measured. */
export function bytesOf({ identity }: VerifiedToken): number {
  const { subject, groups, scopes, claims } = identity;
  let bytes = ENTRY_BYTES + 2 * subject.length + listBytes(groups);
  if (scopes !== undefined) bytes += listBytes(scopes);
  for (const value of claims?.values() ?? []) {
    bytes += CLAIM_BYTES + listBytes(Array.isArray(value) ? value : [value]);
  }
  return bytes;
}

function listBytes(values: readonly ClaimScalar[]): number {
  let bytes = 0;
  for (const value of values) {
    bytes += GROUP_BYTES + (typeof value === "string" ? 2 * value.length : 0);
  }
  return bytes;
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
  const successorOf = (identity: Identity, key: VerificationKey): VerificationKey | undefined => {
    if (!successors.has(key)) {
      successors.set(
        key,
        keysOf(identity.issuer)?.find((other) => isSame(key, other)),
      );
    }
    return successors.get(key);
  };
  for (const [digest, token] of [...verified.entries()]) {
    // Another server has vouched for it: no key has.
    if (token.key === undefined) continue;
    const key = successorOf(token.identity, token.key);
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

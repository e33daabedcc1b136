import type { LRUCache } from "lru-cache";
import { BoundToken } from "../../core/request/bound-token.ts";
import {
  type ClaimScalar,
  Identity,
  type IdentityClaims,
  mintIdentity,
} from "../../core/request/identity.ts";
import type { TokenRefusal, UnprovenVerdict } from "../../core/request/token-verifier.ts";
import type { RevocationList } from "../revocation/revocation-list.ts";
import type { VerificationKey } from "../keys/key-set.ts";

/** A verified token, and the key that verified it. */
export class VerifiedToken {
  readonly claims: IdentityClaims;
  /** The caller, who must give a proof if the token is bound. */
  readonly caller: Identity | BoundToken;
  /** The current version of the key; undefined if another server has vouched for the token. */
  key: VerificationKey | undefined;
  /** When the token must be checked again: at its own end or that of its key, whichever is earlier, in milliseconds since the epoch. */
  until: number;
  /** The version of the revocations that the token was last checked against; NaN for never. */
  #judgedIn = NaN;
  #fault: TokenRefusal | undefined;

  /**
   * @param digest the SHA-256 of the token in base64url.
   * @param until when to check the token again in any case, in milliseconds since the epoch.
   */
  constructor(
    claims: IdentityClaims,
    digest: string,
    key: VerificationKey | undefined,
    until = Infinity,
  ) {
    const { bound, acceptedUntil } = claims;
    const caller = mintIdentity(claims);
    this.caller = bound ? new BoundToken(claims, bound, digest, caller) : caller;
    this.claims = bound ? claims : caller;
    this.key = key;
    this.until = Math.min(acceptedUntil, key?.until ?? Infinity, until);
  }

  /** The caller, unless the token is revoked. */
  verdict(revocations: RevocationList): UnprovenVerdict {
    if (this.#judgedIn !== revocations.version) {
      this.#judgedIn = revocations.version;
      const by = revocations.covering(this.claims);
      const caller = this.caller instanceof Identity ? this.caller : undefined;
      this.#fault = by && { step: "revocation", reason: "revoked", revoked: { caller, by } };
    }
    return this.#fault ?? this.caller;
  }

  /** Updates the key, whose expiry may have changed. */
  goOnWith(key: VerificationKey): void {
    this.key = key;
    this.until = Math.min(this.claims.acceptedUntil, key.until ?? Infinity);
  }
}

/** The memory of a cached token without its groups: the entry, the identity, and the standard claims. */
const ENTRY_BYTES = 900;
/** The memory of a group besides its characters, which are stored twice: in the claims, and in a header. */
const GROUP_BYTES = 36;

/** The memory of a kept claim in addition to its value: a map entry, and a possible header. */
const CLAIM_BYTES = 150;

/** Estimates the memory of a cached token, in bytes. Measured: 17 KB for 200 groups of 25 characters. */
export function bytesOf(token: VerifiedToken): number {
  const { subject, groups, scopes, claims } = token.claims;
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
 * Removes every token whose key its issuer no longer has. All others stay, and take over the new expiry of their key.
 * Works in place, so that the order of eviction stays the same.
 * @param keysOf returns the keys of an issuer.
 */
export function keepProven(
  verified: LRUCache<string, VerifiedToken>,
  keysOf: (issuer: string) => readonly VerificationKey[] | undefined,
): void {
  // Thousands of tokens share a few keys, so each key is looked up once.
  const successors = new Map<VerificationKey, VerificationKey | undefined>();
  const successorOf = (issuer: string, key: VerificationKey): VerificationKey | undefined => {
    if (!successors.has(key)) {
      const successor = keysOf(issuer)?.find((other) => isSame(key, other));
      successors.set(key, successor);
    }
    return successors.get(key);
  };
  for (const [digest, token] of [...verified.entries()]) {
    // Another server has vouched for the token, not a key.
    if (token.key === undefined) continue;
    const key = successorOf(token.claims.issuer, token.key);
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

import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { GateError } from "../core/errors.ts";
import { type Identity, type IdentityClaims, mintIdentity } from "../core/identity.ts";
import type { Log } from "../core/log.ts";
import type { Observer } from "../core/observer.ts";
import type { TokenRefusal, TokenVerifier } from "../core/token-verifier.ts";
import type { Clock } from "../lib/clock.ts";
import { LoopShare } from "../lib/loop-share.ts";
import { SingleFlight } from "../lib/single-flight.ts";
import { acceptedUntil, readClaims } from "./claims.ts";
import { type KeySource, selectKey, type VerificationKey } from "./key-set.ts";
import { type IssuerOptions, type KnownIssuer, knownIssuers } from "./known-issuers.ts";
import { isSignedWith } from "./signature.ts";
import { readToken, type UnverifiedToken } from "./token-text.ts";
import { keepProven, VerifiedToken } from "./verified-token.ts";

export interface TokenVerifierOptions extends IssuerOptions {
  /** How many verified tokens are remembered; 1 or more. */
  readonly cacheEntries: number;
  /** The longest token that is looked at; 8192 when left out. */
  readonly maxBytes?: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: Pick<Observer, "tokenCache">;
}

export interface CachingTokenVerifier extends TokenVerifier {
  /** How many verified tokens are remembered now. */
  entries(): number;
  /** Ends the watching and fetching of trusted keys. */
  close(): void;
}

/** What is thrown away as a whole when keys change. */
interface Generation {
  readonly underWay: SingleFlight<Verdict>;
  /** The last token of each connection: while it is sent again, nothing needs to be hashed (0.9 µs). */
  readonly last: WeakMap<object, LastToken>;
}

interface LastToken {
  readonly token: string;
  readonly verified: VerifiedToken;
}

type Verdict = Identity | TokenRefusal;

/** A token of which only the signature is still to be checked. */
interface Unverified {
  readonly token: string;
  readonly digest: string;
  readonly read: UnverifiedToken;
  readonly issuer: KnownIssuer;
  readonly claims: IdentityClaims;
}

const MAX_BYTES = 8192;

/**
 * Signatures are checked for so long in one turn of the loop, in milliseconds: behind a burst of 64 forged ones a request
 * with a remembered token would wait for 6 ms otherwise.
 */
const SIGNATURES_MS = 0.2;

/** Verifies our own tokens and those of trusted issuers. Throws `ConfigError` when a file of trusted keys is unusable. */
export function createTokenVerifier(options: TokenVerifierOptions): CachingTokenVerifier {
  const { cacheEntries, maxBytes = MAX_BYTES, clock, log, observer } = options;
  // Under the SHA-256 of the whole text: two tokens that differ in one character share nothing.
  const verified = new LRUCache<string, VerifiedToken>({ max: cacheEntries });
  const begin = (): Generation => ({ underWay: new SingleFlight(), last: new WeakMap() });
  let generation = begin();
  const share = new LoopShare(clock, SIGNATURES_MS);
  const changed = (): void => {
    keepProven(verified, (name) => issuers.get(name)?.keys.current());
    generation = begin();
  };
  const issuers = knownIssuers(options, { clock, log, changed });

  /** What can be told without the signature, which costs more than all the rest, comes first. */
  function check(token: string, digest: string): Verdict | Promise<Verdict> {
    const read = readToken(token);
    if (typeof read === "string") return read;
    const { iss } = read.payload;
    const issuer = typeof iss === "string" ? issuers.get(iss) : undefined;
    if (issuer === undefined) return "issuer";
    const claims = readClaims(read.payload, issuer.name, issuer, clock.now());
    if (typeof claims === "string") return claims;
    const key = findKey(issuer.keys, read);
    if (key === "algorithm") return key;
    const unverified: Unverified = { token, digest, read, issuer, claims };
    const found = key !== "unknown_key" && key !== undefined;
    if (found && share.free) return share.now(() => prove(unverified, key));
    return generation.underWay.run(digest, () => proveLater(unverified, !found));
  }

  /** In its turn, with the keys of that time; asks for new ones first where none was found. */
  async function proveLater(unverified: Unverified, refresh: boolean): Promise<Verdict> {
    const { issuer, read } = unverified;
    if (refresh) await issuer.keys.refresh();
    return share.later(() => {
      const key = findKey(issuer.keys, read);
      if (key === undefined) throw new GateError("keys_unusable", { retryAfter: 5 });
      return typeof key === "string" ? key : prove(unverified, key);
    });
  }

  function prove(
    { token, digest, read, issuer, claims }: Unverified,
    key: VerificationKey,
  ): Verdict {
    if (!isSignedWith(token, key.key, read.algorithm)) return "signature";
    const until = acceptedUntil(claims.expiresAt, issuer.skewMs);
    if (clock.now() >= until) return "expired"; // while the keys were fetched
    const identity = mintIdentity(claims);
    verified.set(digest, new VerifiedToken(identity, until, key));
    return identity;
  }

  /** A verified token that is sent again, by this connection or by another. */
  function recall(token: string, digest: string, connection: object | undefined) {
    const known = verified.get(digest);
    if (known !== undefined && connection !== undefined) {
      generation.last.set(connection, { token, verified: known });
    }
    return known;
  }

  return {
    verify(token, connection) {
      const last = connection && generation.last.get(connection);
      if (last?.token === token && clock.now() < last.verified.until) {
        observer.tokenCache("hit");
        return last.verified.identity;
      }
      if (token.length > maxBytes) return "too_large";
      const digest = hash("sha256", token, "base64url");
      const known = recall(token, digest, connection);
      observer.tokenCache(known === undefined ? "miss" : "hit");
      if (known === undefined) return check(token, digest);
      if (clock.now() < known.until) return known.identity;
      verified.delete(digest);
      return check(token, digest); // it has ended, or its key has
    },
    entries: () => verified.size,
    close() {
      for (const { keys } of issuers.values()) keys.close();
    },
  };
}

function findKey(
  keys: KeySource,
  { kid, algorithm }: UnverifiedToken,
): VerificationKey | "unknown_key" | "algorithm" | undefined {
  const known = keys.current();
  return known && selectKey(known, kid, algorithm);
}

import { hash } from "node:crypto";
import { compactVerify, errors } from "jose";
import { LRUCache } from "lru-cache";
import { GateError } from "../core/errors.ts";
import { type Identity, type IdentityClaims, mintIdentity } from "../core/identity.ts";
import type { Log } from "../core/log.ts";
import type { Observer } from "../core/observer.ts";
import type { TokenRefusal, TokenVerifier } from "../core/token-verifier.ts";
import type { Clock } from "../lib/clock.ts";
import { SingleFlight } from "../lib/single-flight.ts";
import { acceptedUntil, readClaims } from "./claims.ts";
import { type KeySource, selectKey, type VerificationKey } from "./key-set.ts";
import { type IssuerOptions, type KnownIssuer, knownIssuers } from "./known-issuers.ts";
import { readToken, type UnverifiedToken } from "./token-text.ts";

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

/** A verified token, under the SHA-256 of its whole text: two tokens that differ in one character share nothing. */
interface VerifiedToken {
  readonly identity: Identity;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

/** What was verified with one generation of keys. It is thrown away as a whole when keys change. */
interface Generation {
  readonly verified: LRUCache<string, VerifiedToken>;
  readonly underWay: SingleFlight<Identity | TokenRefusal>;
}

const MAX_BYTES = 8192;

/** Verifies our own tokens and those of trusted issuers. Throws `ConfigError` when a file of trusted keys is unusable. */
export function createTokenVerifier(options: TokenVerifierOptions): CachingTokenVerifier {
  const { cacheEntries, maxBytes = MAX_BYTES, clock, log, observer } = options;
  const begin = (): Generation => ({
    verified: new LRUCache({ max: cacheEntries }),
    underWay: new SingleFlight(),
  });
  let generation = begin();
  const changed = (): void => {
    generation = begin();
  };
  const issuers = knownIssuers(options, { clock, log, changed });

  /** Everything that can be told without the signature, which costs a hundred times as much. */
  function check(token: string, digest: string): TokenRefusal | Promise<Identity | TokenRefusal> {
    const read = readToken(token);
    if (typeof read === "string") return read;
    const { iss } = read.payload;
    const issuer = typeof iss === "string" ? issuers.get(iss) : undefined;
    if (issuer === undefined) return "issuer";
    const claims = readClaims(read.payload, issuer.name, issuer, clock.now());
    if (typeof claims === "string") return claims;
    return generation.underWay.run(digest, () => prove(token, digest, read, issuer, claims));
  }

  async function prove(
    token: string,
    digest: string,
    read: UnverifiedToken,
    issuer: KnownIssuer,
    claims: IdentityClaims,
  ): Promise<Identity | TokenRefusal> {
    let key = findKey(issuer.keys, read);
    if (key === "unknown_key" || key === undefined) {
      await issuer.keys.refresh();
      key = findKey(issuer.keys, read);
    }
    if (key === undefined) throw new GateError("keys_unusable", { retryAfter: 5 });
    if (typeof key === "string") return key;
    // Taken together with the key: were the key removed now, this would fill a cache that nobody asks any more.
    const { verified } = generation;
    if (!(await isSignedWith(token, key, read))) return "signature";
    const until = acceptedUntil(claims.expiresAt, issuer.skewMs);
    if (clock.now() >= until) return "expired"; // while the keys were fetched
    const identity = mintIdentity(claims);
    verified.set(digest, { identity, until });
    return identity;
  }

  return {
    verify(token) {
      if (token.length > maxBytes) return "too_large";
      const digest = hash("sha256", token, "base64url");
      const known = generation.verified.get(digest);
      observer.tokenCache(known === undefined ? "miss" : "hit");
      if (known === undefined) return check(token, digest);
      if (clock.now() < known.until) return known.identity;
      generation.verified.delete(digest);
      return "expired";
    },
    entries: () => generation.verified.size,
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

async function isSignedWith(
  token: string,
  { key }: VerificationKey,
  { algorithm }: UnverifiedToken,
): Promise<boolean> {
  try {
    await compactVerify(token, key, { algorithms: [algorithm] });
    return true;
  } catch (error) {
    if (error instanceof errors.JWSSignatureVerificationFailed) return false;
    throw error;
  }
}

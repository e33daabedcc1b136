import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { GateError } from "../../core/request/errors.ts";
import { Identity, type IdentityClaims, mintIdentity } from "../../core/request/identity.ts";
import { NOTHING_REVOKED, type Revocations } from "../../core/revocation.ts";
import type { Log } from "../../core/log.ts";
import type {
  NeededClaims,
  TokenRefusal,
  TokenVerdict,
  TokenVerifier,
  VerificationNotes,
} from "../../core/request/token-verifier.ts";
import type { Clock } from "../../lib/clock.ts";
import { LoopBudget } from "../../lib/async/loop-budget.ts";
import { SingleFlight } from "../../lib/async/single-flight.ts";
import { readClaims } from "./claims.ts";
import type { VerificationKey } from "../keys/key-set.ts";
import { findKey } from "./find-key.ts";
import { type IssuerOptions, type KnownIssuer, knownIssuers } from "../trusted/known-issuers.ts";
import type { ObserveCheck, RemoteIssuer } from "../remote/remote-issuer.ts";
import {
  type AboutToken,
  type RemoteVerification,
  remoteVerificationOf,
} from "../remote/remote-verification.ts";
import { isSignedWith } from "./signature.ts";
import { isOpaque, readToken, typeFault, type UnverifiedToken } from "./token-text.ts";
import { bytesOf, keepProven, VerifiedToken } from "./verified-token.ts";

export interface TokenVerifierOptions extends IssuerOptions {
  /** Maximum number of cached tokens; 1 or more. */
  readonly cacheEntries: number;
  /** Maximum memory of the cache in bytes, estimated. */
  readonly cacheBytes: number;
  /** Whether an assertion is cached with each token. It is about as large as the token. */
  readonly asserts?: boolean | undefined;
  /** Maximum length of a token. */
  readonly maxBytes: number;
  /** The claims that a verified token keeps; by default those that every identity has. */
  readonly needed?: NeededClaims | undefined;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when the keys of an issuer have changed. */
  readonly keysChanged?: (() => void) | undefined;
  /** The revocations; by default none. */
  readonly revocations?: Revocations | undefined;
  /** Issuers whose tokens other servers verify. */
  readonly remote?: readonly RemoteIssuer[] | undefined;
  /** Receives the results of these servers. */
  readonly observeCheck?: ObserveCheck | undefined;
}

/** Discarded as a whole when keys change. */
interface Generation {
  readonly underWay: SingleFlight<TokenVerdict>;
  /** The last token of each connection. If the next request carries the same token, it need not be hashed (0.9 µs). */
  readonly last: WeakMap<object, LastToken>;
  /** Tokens refused for their signature. If one is sent again, its signature is not checked again. */
  readonly forged: LRUCache<string, true>;
}

interface LastToken {
  readonly token: string;
  readonly verified: VerifiedToken;
}

/** A token whose signature is still to be checked. */
interface Unverified {
  readonly token: string;
  readonly digest: string;
  readonly read: UnverifiedToken;
  readonly issuer: KnownIssuer;
  readonly claims: IdentityClaims;
}

/**
 * Maximum time spent on signatures in one turn of the event loop, in milliseconds. Without the limit, a request with a
 * cached token waits 6 ms behind a burst of 64 forged tokens.
 */
const SIGNATURES_MS = 0.2;

/** Maximum number of remembered forged tokens. */
const MAX_FORGED = 1_000;

const TOO_LARGE: TokenRefusal = { step: "size", reason: "too_large" };
const UNKNOWN_ISSUER: TokenRefusal = { step: "issuer", reason: "issuer" };
const WRONG_SIGNATURE: TokenRefusal = { step: "signature", reason: "signature" };

/** Verifies our own tokens and those of trusted issuers, and caches those that are valid. */
export class CachingTokenVerifier implements TokenVerifier {
  readonly #options: TokenVerifierOptions;
  readonly #issuers: ReadonlyMap<string, KnownIssuer>;
  /** Keyed by the SHA-256 of the whole text, so that two tokens that differ in one character share nothing. */
  readonly #verified: LRUCache<string, VerifiedToken>;
  readonly #remote: RemoteVerification | undefined;
  readonly #share: LoopBudget;
  readonly #revocations: Revocations;
  readonly #stopListening: () => void;
  /** Every `typ` that some issuer may use. */
  readonly #types: readonly string[];
  #generation = newGeneration();

  /** @throws ConfigError if a file of trusted keys is unusable. */
  constructor(options: TokenVerifierOptions) {
    const { cacheEntries, cacheBytes, clock, log } = options;
    this.#options = options;
    this.#revocations = options.revocations ?? NOTHING_REVOKED;
    this.#verified = new LRUCache({
      max: cacheEntries,
      maxSize: cacheBytes,
      sizeCalculation: (token) => bytesOf(token) * (options.asserts === true ? 2 : 1),
    });
    this.#share = new LoopBudget(clock, SIGNATURES_MS);
    this.#issuers = knownIssuers(options, { clock, log, changed: () => this.#keysChanged() });
    this.#remote = remoteVerificationOf(options);
    this.#types = [...this.#issuers.values()].flatMap(({ types }) => types ?? []);
    // The last token of a connection is used without a lookup, so each must be looked up once more.
    this.#stopListening = this.#revocations.onChange(() => {
      this.#generation = { ...this.#generation, last: new WeakMap() };
    });
  }

  /** The number of cached tokens. */
  get entries(): number {
    return this.#verified.size;
  }

  verify(
    token: string,
    connection?: object,
    notes?: VerificationNotes,
  ): TokenVerdict | Promise<TokenVerdict> {
    const { clock, maxBytes } = this.#options;
    const last = connection && this.#generation.last.get(connection);
    if (last?.token === token && clock.now() < last.verified.until) {
      if (notes !== undefined) notes.tokenCache = "hit";
      return last.verified.identity;
    }
    if (token.length > maxBytes) return TOO_LARGE;
    const digest = hash("sha256", token, "base64url");
    const known = this.#verified.get(digest);
    if (notes !== undefined) notes.tokenCache = known === undefined ? "miss" : "hit";
    const client = notes?.client ?? "";
    if (known === undefined) return this.#check(token, digest, client);
    if (clock.now() < known.until) return this.#recall(token, known, connection);
    this.#verified.delete(digest);
    return this.#check(token, digest, client); // the token has expired, or its key has
  }

  /** Stops watching and fetching trusted keys. */
  close(): void {
    this.#stopListening();
    for (const { keys } of this.#issuers.values()) keys.close();
    this.#remote?.close();
  }

  #keysChanged(): void {
    keepProven(this.#verified, (name) => this.#issuers.get(name)?.keys.current());
    this.#generation = newGeneration();
    this.#options.keysChanged?.();
  }

  /** Returns the verdict on a verified token that is sent again, on this connection or on another. */
  #recall(token: string, known: VerifiedToken, connection: object | undefined): TokenVerdict {
    const verdict = known.verdict(this.#revocations);
    if (connection !== undefined && verdict instanceof Identity) {
      this.#generation.last.set(connection, { token, verified: known });
    }
    return verdict;
  }

  /** Checks a token that is not cached. The signature comes last, because it costs more than all the rest. */
  #check(token: string, digest: string, client: string): TokenVerdict | Promise<TokenVerdict> {
    if (this.#generation.forged.has(digest)) return WRONG_SIGNATURE;
    const read = readToken(token, this.#types);
    if ("reason" in read) {
      // Of tokens that cannot be read, only opaque ones are sent to another server: a misspelled JWT may be one of
      // ours.
      return isOpaque(token) && this.#remote?.takes(true) === true
        ? this.#askAbout(token, this.#remote, { digest, opaque: true, client })
        : read;
    }
    const { iss } = read.payload;
    const issuer = typeof iss === "string" ? this.#issuers.get(iss) : undefined;
    if (issuer === undefined) {
      return this.#remote?.takes(false) === true
        ? this.#askAbout(token, this.#remote, { digest, opaque: false, client })
        : UNKNOWN_ISSUER;
    }
    const misused = typeFault(read, issuer.types);
    if (misused !== undefined) return { ...misused, expected: issuer };
    const { clock, needed } = this.#options;
    const claims = readClaims(read.payload, issuer.name, issuer, clock.now(), needed);
    if (typeof claims === "string") return { step: "claims", reason: claims, expected: issuer };
    const key = findKey(issuer.keys, read);
    if (key === "algorithm") return { step: "key", reason: key };
    const unverified: Unverified = { token, digest, read, issuer, claims };
    const found = key !== "unknown_key" && key !== undefined;
    if (found && this.#share.canRunNow)
      return this.#share.runNow(() => this.#prove(unverified, key));
    return this.#generation.underWay.run(digest, () => this.#proveLater(unverified, !found));
  }

  #askAbout(token: string, remote: RemoteVerification, about: AboutToken): Promise<TokenVerdict> {
    const { digest } = about;
    return this.#generation.underWay.run(digest, async () => {
      const found = await remote.verify(token, about);
      if ("reason" in found) return found;
      const known = new VerifiedToken(mintIdentity(found.claims), undefined, found.until);
      this.#verified.set(digest, known);
      return known.verdict(this.#revocations);
    });
  }

  /** Waits for its turn, and uses the keys as they are then. Fetches new keys first if no key was found. */
  async #proveLater(unverified: Unverified, refresh: boolean): Promise<TokenVerdict> {
    const { issuer, read } = unverified;
    if (refresh) await issuer.keys.refresh(read.kid);
    return this.#share.enqueue(() => {
      const key = findKey(issuer.keys, read);
      if (key === undefined) throw new GateError("keys_unusable", { retryAfter: 5 });
      return typeof key === "string" ? { step: "key", reason: key } : this.#prove(unverified, key);
    });
  }

  #prove({ token, digest, read, issuer, claims }: Unverified, key: VerificationKey): TokenVerdict {
    if (!isSignedWith(token, key.key, read.algorithm)) {
      this.#generation.forged.set(digest, true);
      return WRONG_SIGNATURE;
    }
    // It may have expired while the keys were fetched.
    if (this.#options.clock.now() >= claims.acceptedUntil) {
      return { step: "claims", reason: "expired", expected: issuer };
    }
    const known = new VerifiedToken(mintIdentity(claims), key);
    this.#verified.set(digest, known);
    return known.verdict(this.#revocations);
  }
}

function newGeneration(): Generation {
  return {
    underWay: new SingleFlight(),
    last: new WeakMap(),
    forged: new LRUCache({ max: MAX_FORGED }),
  };
}

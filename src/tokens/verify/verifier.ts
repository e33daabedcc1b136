import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { IdentityClaims } from "../../core/request/identity.ts";
import { RevocationList } from "../revocation/revocation-list.ts";
import type { Log } from "../../core/log.ts";
import type {
  NeededClaims,
  TokenRefusal,
  UnprovenVerdict,
  VerificationNotes,
} from "../../core/request/token-verifier.ts";
import type { Clock } from "../../lib/clock.ts";
import { type IssuerOptions, type KnownIssuer, knownIssuers } from "../trusted/trusted-keys.ts";
import type { ObserveCheck, RemoteIssuer } from "../remote/token-check-kinds.ts";
import { RemoteVerification } from "../remote/remote-verification.ts";
import { Proofs } from "../proofs/proofs.ts";
import type { UsedProofs } from "../proofs/proof-memory.ts";
import type { RememberProof } from "../../core/shared-parts.ts";
import { bytesOf, keepProven, VerifiedToken } from "./verified-token.ts";
import { GateError } from "../../core/request/errors.ts";
import { LoopBudget } from "../../lib/async/loop-budget.ts";
import { SingleFlight } from "../../lib/async/single-flight.ts";
import { readClaims } from "./claims.ts";
import { type KeySource, selectKey, type VerificationKey } from "../keys/key-set.ts";
import { isOpaque, readToken, typeFault, type UnverifiedToken } from "./token-text.ts";
import { isSignedWith } from "../keys/algorithms.ts";

/** A token that is not cached. */
interface NewToken {
  readonly token: string;
  /** SHA-256 of the token. */
  readonly digest: string;
  readonly notes: VerificationNotes | undefined;
}

/** A token whose signature is still to be checked. */
interface Unverified extends NewToken {
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

const UNKNOWN_ISSUER: TokenRefusal = { step: "issuer", reason: "issuer" };
const WRONG_SIGNATURE: TokenRefusal = { step: "signature", reason: "signature" };

/** Finds the key that a token names among the keys of its issuer; undefined as long as no keys could be loaded. */
function keyOf(
  keys: KeySource,
  { kid, algorithm }: UnverifiedToken,
): VerificationKey | "unknown_key" | "algorithm" | undefined {
  const known = keys.current();
  return known && selectKey(known, kid, algorithm);
}

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
  readonly revocations?: RevocationList | undefined;
  /** Issuers whose tokens other servers verify. */
  readonly remote?: readonly RemoteIssuer[] | undefined;
  /** Receives the results of these servers. */
  readonly observeCheck?: ObserveCheck | undefined;
  readonly usedProofs?: UsedProofs | undefined;
  readonly rememberProof?: RememberProof | undefined;
}

const TOO_LARGE: TokenRefusal = { step: "size", reason: "too_large" };

/** Verifies our own tokens and those of trusted issuers, and caches those that are valid. */
export class TokenVerifier {
  readonly #options: TokenVerifierOptions;
  readonly #issuers: ReadonlyMap<string, KnownIssuer>;
  /** Keyed by the SHA-256 of the whole text, so that two tokens that differ in one character share nothing. */
  readonly #verified: LRUCache<string, VerifiedToken>;
  /** The last token of each connection. If the next request carries the same token, it need not be hashed (0.9 µs). */
  #last = new WeakMap<object, { readonly token: string; readonly verified: VerifiedToken }>();
  readonly #budget: LoopBudget;
  /** Every `typ` that some issuer may use. */
  readonly #types: readonly string[];
  #underWay = new SingleFlight<UnprovenVerdict>();
  /** Tokens refused for their signature. If one is sent again, its signature is not checked again. */
  readonly #forged = new LRUCache<string, true>({ max: MAX_FORGED });
  readonly #remote: RemoteVerification | undefined;
  readonly #revocations: RevocationList;
  /** Undefined if no issuer may bind tokens. */
  readonly proofs: Proofs | undefined;
  readonly #stopListening: () => void;

  /** @throws ConfigError if a file of trusted keys is unusable. */
  constructor(options: TokenVerifierOptions) {
    const { cacheEntries, cacheBytes, clock, log, needed } = options;
    const { revocations = new RevocationList(), remote = [], observeCheck: observe } = options;
    this.#options = options;
    this.#revocations = revocations;
    this.#verified = new LRUCache({
      max: cacheEntries,
      maxSize: cacheBytes,
      sizeCalculation: (token) => bytesOf(token) * (options.asserts === true ? 2 : 1),
    });
    this.#issuers = knownIssuers(options, { clock, log, changed: () => this.#keysChanged() });
    const budget = new LoopBudget(clock, SIGNATURES_MS);
    this.#budget = budget;
    this.#types = [...this.#issuers.values()].flatMap(({ types }) => types ?? []);
    const rules = [...this.#issuers.values(), ...remote].map(({ proof }) => proof ?? "refuse");
    if (rules.some((rule) => rule !== "refuse")) {
      const { keys, usedProofs: used, rememberProof: remember } = options;
      const loginBudget = new LoopBudget(clock, SIGNATURES_MS);
      this.proofs = new Proofs({ keys, budget, loginBudget, used, remember, clock });
    }
    if (remote.length > 0 && observe !== undefined) {
      this.#remote = new RemoteVerification({ issuers: remote, needed, clock, observe });
    }
    // The last token of a connection is used without a lookup, so each must be looked up once more.
    this.#stopListening = revocations.onChange(() => (this.#last = new WeakMap()));
  }

  /** The number of cached tokens. */
  get entries(): number {
    return this.#verified.size;
  }

  /**
   * Returns the caller synchronously if the token is cached, else a verdict or its promise. A refusal is a normal result.
   *
   * @param token the compact serialization, without the scheme.
   * @param connection a key for the connection, if any. A connection usually sends the same token again.
   * @throws or rejects with GateError `keys_unusable` if it cannot decide.
   */
  verify(
    token: string,
    connection?: object,
    notes?: VerificationNotes,
  ): UnprovenVerdict | Promise<UnprovenVerdict> {
    const { clock, maxBytes } = this.#options;
    const last = connection && this.#last.get(connection);
    if (last?.token === token && clock.now() < last.verified.until) {
      if (notes !== undefined) notes.tokenCache = "hit";
      return last.verified.caller;
    }
    if (token.length > maxBytes) return TOO_LARGE;
    const digest = hash("sha256", token, "base64url");
    const known = this.#verified.get(digest);
    if (notes !== undefined) notes.tokenCache = known === undefined ? "miss" : "hit";
    if (known !== undefined) {
      if (clock.now() < known.until) return this.#recall(token, known, connection, notes);
      this.#verified.delete(digest); // the token has expired, or its key has
    }
    return this.#check({ token, digest, notes });
  }

  /** Stops watching and fetching trusted keys. */
  close(): void {
    this.#stopListening();
    for (const { keys } of this.#issuers.values()) keys.close();
    this.#remote?.close();
  }

  #keysChanged(): void {
    keepProven(this.#verified, (name) => this.#issuers.get(name)?.keys.current());
    this.#last = new WeakMap();
    // What was found with the former keys no longer counts.
    this.#underWay = new SingleFlight();
    this.#forged.clear();
    this.#options.keysChanged?.();
  }

  /** Returns the verdict on a verified token that is sent again, on this connection or on another. */
  #recall(
    token: string,
    known: VerifiedToken,
    connection: object | undefined,
    notes: VerificationNotes | undefined,
  ): UnprovenVerdict {
    const verdict = known.verdict(this.#revocations);
    if (connection !== undefined && !("reason" in verdict)) {
      this.#last.set(connection, { token, verified: known });
    }
    if (notes?.trace !== undefined) notes.trace.remote = known.key === undefined;
    return verdict;
  }

  /**
   * Checks a token. The signature comes last, because it costs more than all the rest.
   * @throws or rejects with GateError `keys_unusable` if it cannot decide.
   */
  #check(given: NewToken): UnprovenVerdict | Promise<UnprovenVerdict> {
    const { token, digest, notes } = given;
    const { clock, needed } = this.#options;
    const remote = this.#remote;
    if (this.#forged.has(digest)) {
      if (notes !== undefined) notes.tokenCache = "forged";
      return WRONG_SIGNATURE;
    }
    const read = readToken(token, this.#types);
    if ("reason" in read) {
      // Of tokens that cannot be read, only opaque ones are sent to another server: a misspelled JWT may be one of
      // ours.
      const opaque = isOpaque(token) && remote?.takes(true) === true;
      return opaque ? this.#query(given, remote, true) : read;
    }
    const { iss } = read.payload;
    const issuer = typeof iss === "string" ? this.#issuers.get(iss) : undefined;
    if (issuer === undefined && remote?.takes(false) === true) {
      return this.#query(given, remote, false);
    }
    if (issuer === undefined) return UNKNOWN_ISSUER;
    const misused = typeFault(read, issuer.types);
    if (misused !== undefined) return { ...misused, expected: issuer };
    const claims = readClaims(read.payload, issuer.name, issuer, clock.now(), needed);
    if (typeof claims === "string") return { step: "claims", reason: claims, expected: issuer };
    return this.#findKey({ ...given, read, issuer, claims });
  }

  #findKey(unverified: Unverified): UnprovenVerdict | Promise<UnprovenVerdict> {
    const key = keyOf(unverified.issuer.keys, unverified.read);
    if (key === "algorithm") return { step: "key", reason: key };
    const found = key !== "unknown_key" && key !== undefined;
    if (found && this.#budget.canRunNow) {
      return this.#budget.runNow(() => this.#prove(unverified, key));
    }
    return this.#once(unverified, () => this.#proveLater(unverified, !found));
  }

  /** Queries other servers about a token. */
  #query(given: NewToken, remote: RemoteVerification, opaque: boolean): Promise<UnprovenVerdict> {
    const { token, digest, notes } = given;
    return this.#once(given, async () => {
      const found = await remote.verify(token, { digest, opaque, notes });
      if ("reason" in found) return found;
      return this.#accept(given, new VerifiedToken(found.claims, digest, undefined, found.until));
    });
  }

  /** Runs a verification, or joins the one under way for the same token, which would leave no trace. */
  #once(
    { digest, notes }: NewToken,
    work: () => Promise<UnprovenVerdict>,
  ): Promise<UnprovenVerdict> {
    return notes?.trace === undefined ? this.#underWay.run(digest, work) : work();
  }

  /** Waits for its turn, and uses the keys as they are then. Fetches new keys first if no key was found. */
  async #proveLater(unverified: Unverified, refresh: boolean): Promise<UnprovenVerdict> {
    const { issuer, read } = unverified;
    if (refresh) await issuer.keys.refresh(read.kid);
    return this.#budget.enqueue(() => {
      const key = keyOf(issuer.keys, read);
      if (key === undefined) throw new GateError("keys_unusable", { retryAfter: 5 });
      return typeof key === "string" ? { step: "key", reason: key } : this.#prove(unverified, key);
    });
  }

  #prove(unverified: Unverified, key: VerificationKey): UnprovenVerdict {
    const { token, digest, read, issuer, claims } = unverified;
    if (!isSignedWith(token, key.key, read.algorithm)) {
      this.#forged.set(digest, true);
      return WRONG_SIGNATURE;
    }
    // It may have expired while the keys were fetched.
    if (this.#options.clock.now() >= claims.acceptedUntil) {
      return { step: "claims", reason: "expired", expected: issuer };
    }
    return this.#accept(unverified, new VerifiedToken(claims, digest, key));
  }

  #accept({ digest }: NewToken, known: VerifiedToken): UnprovenVerdict {
    this.#verified.set(digest, known);
    return known.verdict(this.#revocations);
  }
}

import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { Identity } from "../../core/request/identity.ts";
import { RevocationList } from "../revocation/revocation-list.ts";
import type { Log } from "../../core/log.ts";
import type {
  NeededClaims,
  TokenRefusal,
  TokenVerdict,
  VerificationNotes,
  VerificationTrace,
} from "../../core/request/token-verifier.ts";
import type { Clock } from "../../lib/clock.ts";
import { type IssuerOptions, type KnownIssuer, knownIssuers } from "../trusted/trusted-keys.ts";
import type { ObserveCheck, RemoteIssuer } from "../remote/token-check-kinds.ts";
import { RemoteVerification } from "../remote/remote-verification.ts";
import { LOCAL_STEPS, REMOTE_STEPS, Verification } from "./verification.ts";
import { bytesOf, keepProven, type VerifiedToken } from "./verified-token.ts";

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
}

interface LastToken {
  readonly token: string;
  readonly verified: VerifiedToken;
}

const TOO_LARGE: TokenRefusal = { step: "size", reason: "too_large" };

/** Verifies our own tokens and those of trusted issuers, and caches those that are valid. */
export class TokenVerifier {
  readonly #options: TokenVerifierOptions;
  readonly #issuers: ReadonlyMap<string, KnownIssuer>;
  /** Keyed by the SHA-256 of the whole text, so that two tokens that differ in one character share nothing. */
  readonly #verified: LRUCache<string, VerifiedToken>;
  /** The last token of each connection. If the next request carries the same token, it need not be hashed (0.9 µs). */
  #last = new WeakMap<object, LastToken>();
  readonly #verification: Verification;
  readonly #remote: RemoteVerification | undefined;
  readonly #revocations: RevocationList;
  readonly #stopListening: () => void;

  /** @throws ConfigError if a file of trusted keys is unusable. */
  constructor(options: TokenVerifierOptions) {
    const { cacheEntries, cacheBytes, clock, log, needed } = options;
    const {
      revocations = new RevocationList(),
      remote: issuers = [],
      observeCheck: observe,
    } = options;
    this.#options = options;
    this.#revocations = revocations;
    this.#verified = new LRUCache({
      max: cacheEntries,
      maxSize: cacheBytes,
      sizeCalculation: (token) => bytesOf(token) * (options.asserts === true ? 2 : 1),
    });
    this.#issuers = knownIssuers(options, { clock, log, changed: () => this.#keysChanged() });
    if (issuers.length > 0 && observe !== undefined) {
      this.#remote = new RemoteVerification({ issuers, needed, clock, observe });
    }
    this.#verification = new Verification({
      issuers: this.#issuers,
      remote: this.#remote,
      needed,
      revocations,
      clock,
      verified: (digest, token) => void this.#verified.set(digest, token),
    });
    // The last token of a connection is used without a lookup, so each must be looked up once more.
    this.#stopListening = revocations.onChange(() => (this.#last = new WeakMap()));
  }

  /** The number of cached tokens. */
  get entries(): number {
    return this.#verified.size;
  }

  /**
   * Returns an identity synchronously if the token is cached, else a verdict or its promise. A refusal is a normal result.
   *
   * @param token the compact serialization, without the scheme.
   * @param connection a key for the connection, if any. A connection usually sends the same token again.
   * @throws or rejects with GateError `keys_unusable` if it cannot decide.
   */
  verify(
    token: string,
    connection?: object,
    notes?: VerificationNotes,
  ): TokenVerdict | Promise<TokenVerdict> {
    const { clock, maxBytes } = this.#options;
    const last = connection && this.#last.get(connection);
    if (last?.token === token && clock.now() < last.verified.until) {
      if (notes !== undefined) notes.tokenCache = "hit";
      return last.verified.identity;
    }
    if (token.length > maxBytes) return TOO_LARGE;
    notes?.trace?.passed.push("size");
    const digest = hash("sha256", token, "base64url");
    const known = this.#verified.get(digest);
    if (notes !== undefined) notes.tokenCache = known === undefined ? "miss" : "hit";
    if (known !== undefined) {
      if (clock.now() < known.until) return this.#recall(token, known, connection, notes);
      this.#verified.delete(digest); // the token has expired, or its key has
    }
    return this.#verification.check({ token, digest, notes });
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
    this.#verification.forget();
    this.#options.keysChanged?.();
  }

  /** Returns the verdict on a verified token that is sent again, on this connection or on another. */
  #recall(
    token: string,
    known: VerifiedToken,
    connection: object | undefined,
    notes: VerificationNotes | undefined,
  ): TokenVerdict {
    const verdict = known.verdict(this.#revocations);
    const accepted = verdict instanceof Identity;
    if (connection !== undefined && accepted) {
      this.#last.set(connection, { token, verified: known });
    }
    if (notes?.trace !== undefined) traceCached(notes.trace, known, accepted);
    return verdict;
  }
}

/** Records the steps that a cached token passed when it was verified. */
function traceCached(trace: VerificationTrace, { key }: VerifiedToken, accepted: boolean): void {
  trace.remote = key === undefined;
  trace.passed.push(...(trace.remote ? REMOTE_STEPS : LOCAL_STEPS));
  if (accepted) trace.passed.push("revocation");
}

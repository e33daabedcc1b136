import { LRUCache } from "lru-cache";
import { type RemoteCheckObserver, STALE_STEP_MS } from "../../core/remote-check.ts";
import { GateError } from "../../core/request/errors.ts";
import type { IdentityClaims } from "../../core/request/identity.ts";
import type {
  Expectations,
  NeededClaims,
  TokenRefusal,
  VerificationNotes,
} from "../../core/request/token-verifier.ts";
import type { Clock } from "../../lib/clock.ts";
import { FairQuestions } from "../../lib/async/fair-questions.ts";
import { NotAskedError, remoteFailure } from "../../lib/text/error-code.ts";
import { readClaims } from "../verify/claims.ts";
import {
  AT_ONCE,
  type ObserveCheck,
  type RemoteClaims,
  type RemoteIssuer,
  type RemoteTokenCheck,
  type TokenCheck,
  tokenCheckOf,
} from "./token-check-kinds.ts";

/** Maximum number of remembered tokens, for all clients and for one client. Each takes about 200 bytes. */
const MOST = 10_000;
const MOST_OF_CLIENT = 1_000;

interface Refused {
  readonly client: string;
  /** Monotonic, milliseconds. */
  readonly until: number;
}

/**
 * Remembers refused tokens for a while. A client that sends many invalid tokens evicts its own before those of others.
 */
export class RefusedTokens {
  readonly #clock: Clock;
  /** By digest. */
  readonly #tokens = new LRUCache<string, Refused>({
    max: MOST,
    dispose: ({ client }, digest) => {
      const own = this.#byClient.get(client);
      own?.delete(digest);
      if (own?.size === 0) this.#byClient.delete(client);
    },
  });
  /** The digests of each client, oldest first. */
  readonly #byClient = new Map<string, Set<string>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#tokens.size;
  }

  /** Whether a token was refused. Looking for it does not keep it longer. */
  has(digest: string): boolean {
    return this.#clock.monotonic() < (this.#tokens.peek(digest)?.until ?? -Infinity);
  }

  /** @param client the client that sent the token. @param forMs how long to remember it, in milliseconds. */
  add(digest: string, client: string, forMs: number): void {
    this.#tokens.delete(digest);
    const own = this.#byClient.get(client) ?? new Set();
    const [oldest] = own;
    if (own.size >= MOST_OF_CLIENT && oldest !== undefined) this.#tokens.delete(oldest);
    this.#byClient.set(client, own.add(digest));
    this.#tokens.set(digest, { client, until: this.#clock.monotonic() + forMs });
  }
}

interface RemoteVerificationOptions {
  readonly issuers: readonly RemoteIssuer[];
  readonly needed?: NeededClaims | undefined;
  readonly clock: Clock;
  readonly observe: ObserveCheck;
}

/** A yes that may stand in for an answer. */
interface Yes {
  readonly claims: IdentityClaims;
  /** When it ends for good, in milliseconds since the epoch. */
  readonly ends: number;
}

/** Maximum number of yeses that may stand in for an answer, for each server. */
const MOST_YESES = 5_000;

interface Asked extends Expectations, Omit<TokenCheck, "open"> {
  readonly name: string;
  readonly check: RemoteTokenCheck;
  readonly questions: FairQuestions;
  /** Earlier yeses, by digest. */
  readonly yeses: LRUCache<string, Yes>;
  readonly observer: RemoteCheckObserver;
}

/** The context of a token. */
interface AboutToken {
  readonly digest: string;
  readonly opaque: boolean;
  /** The client that sent the token; all tokens without a client share one name. */
  readonly notes: VerificationNotes | undefined;
}

/** A caller that another server has vouched for. */
interface Vouched {
  readonly claims: IdentityClaims;
  /** Until when the result is cached, in milliseconds since the epoch. */
  readonly until: number;
}

/** RFC 6750 §2.1. */
const B64TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;
/** How long a stream of a token without expiry lives, in seconds. The token itself is checked again sooner. */
const ASSUMED_LIFE_S = 3_600;
/** Maximum time for which a refused token is remembered. */
const LONGEST_REFUSAL_MS = 5_000;

const INACTIVE: TokenRefusal = { step: "signature", reason: "inactive" };
const NOT_B64: TokenRefusal = {
  step: "form",
  reason: "malformed",
  detail: "it contains characters that are not allowed in a token",
};

/** Verifies tokens by asking other servers about them. */
export class RemoteVerification {
  readonly #clock: Clock;
  readonly #needed: NeededClaims | undefined;
  readonly #asked: readonly Asked[];
  readonly #refused: RefusedTokens;

  constructor({ issuers, needed, clock, observe }: RemoteVerificationOptions) {
    this.#clock = clock;
    this.#refused = new RefusedTokens(clock);
    this.#needed = needed;
    this.#asked = issuers.flatMap((each) => askedOf(each, observe) ?? []);
  }

  /** Reports whether a server can be asked about a token that no key verifies. */
  takes(opaque: boolean): boolean {
    return this.#asked.some(({ opaqueOnly }) => opaque || !opaqueOnly);
  }

  /**
   * Asks the servers one after the other until one knows the token.
   *
   * @throws GateError `keys_unusable` if no server accepts the token and at least one was unavailable.
   */
  async verify(
    token: string,
    { digest, opaque, notes }: AboutToken,
  ): Promise<Vouched | TokenRefusal> {
    const { client = "", trace } = notes ?? {};
    if (trace !== undefined) trace.remote = true;
    if (!B64TOKEN.test(token)) return NOT_B64;
    if (this.#refused.has(digest)) return INACTIVE;
    let refusal = INACTIVE;
    let unavailable = false;
    let forMs = LONGEST_REFUSAL_MS;
    for (const asked of this.#asked) {
      if (asked.opaqueOnly && !opaque) continue;
      forMs = Math.min(forMs, asked.cache);
      const found = await this.#askOne(asked, token, digest, client);
      const result = found === "unavailable" ? found : "claims" in found ? "accepted" : "refused";
      trace?.queried.push({ issuer: asked.name, label: asked.label, result });
      if (found === "unavailable") unavailable = true;
      else if ("claims" in found) return found;
      else if (found !== INACTIVE) refusal = found;
    }
    if (unavailable) throw new GateError("keys_unusable", { retryAfter: 1 });
    if (forMs > 0) this.#refused.add(digest, client, forMs);
    return refusal;
  }

  close(): void {
    for (const { check } of this.#asked) check.close();
  }

  async #askOne(
    asked: Asked,
    token: string,
    digest: string,
    client: string,
  ): Promise<Vouched | TokenRefusal | "unavailable"> {
    const { check, questions, timeout, observer, staleFor, yeses } = asked;
    const began = this.#clock.monotonic();
    const seconds = (): number => (this.#clock.monotonic() - began) / 1000;
    try {
      const found = await questions.ask(client, AbortSignal.timeout(timeout), async () =>
        check.ask(token, AbortSignal.timeout(timeout)),
      );
      observer.answered(found !== undefined, seconds());
      const verdict = found === undefined ? INACTIVE : this.#read(found, asked);
      if (!("claims" in verdict)) yeses.delete(digest);
      else if (staleFor > 0) {
        yeses.set(digest, { claims: verdict.claims, ends: verdict.until + staleFor });
      }
      return verdict;
    } catch (error) {
      observer.failed(remoteFailure(error), seconds());
      // Clients who fill their own queue are not an outage.
      const stale = error instanceof NotAskedError ? undefined : this.#standIn(digest, asked);
      return stale ?? "unavailable";
    }
  }

  /** Returns an earlier yes, for a while in which the server is not asked; never beyond the end of the token. */
  #standIn(digest: string, { staleFor, yeses, observer }: Asked): Vouched | undefined {
    const known = staleFor === 0 ? undefined : yeses.get(digest);
    if (known === undefined) return undefined;
    const now = this.#clock.now();
    const until = Math.min(known.ends, known.claims.expiresAt * 1000, now + STALE_STEP_MS);
    if (until <= now) return undefined;
    observer.stale();
    return { claims: known.claims, until };
  }

  #read(found: RemoteClaims, asked: Asked): Vouched | TokenRefusal {
    const now = this.#clock.now();
    const payload = { exp: Math.floor(now / 1000) + ASSUMED_LIFE_S, ...found };
    const claims = readClaims(payload, asked.name, asked, now, this.#needed);
    if (typeof claims === "string") return { step: "claims", reason: claims, expected: asked };
    // A response is never cached beyond `exp`, whatever the clock skew (RFC 7662 §4).
    return { claims, until: Math.min(claims.expiresAt * 1000, now + asked.cache) };
  }
}

function askedOf(each: RemoteIssuer, observe: ObserveCheck): Asked | undefined {
  const { issuer, audience, clockSkew, claims } = each;
  const check = tokenCheckOf(each);
  if (check === undefined) return undefined;
  return {
    ...check,
    name: issuer,
    skewMs: clockSkew,
    issuedAheadMs: clockSkew,
    mapping: claims,
    proof: each.proof,
    audiences: audience === undefined ? "any" : [audience].flat(),
    questions: new FairQuestions({ atOnce: AT_ONCE, most: 256, mostOfClient: 64 }),
    check: check.open(),
    yeses: new LRUCache({ max: MOST_YESES }),
    observer: observe(check.kind, issuer),
  };
}

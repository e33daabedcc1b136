import { LRUCache } from "lru-cache";
import { type BoundToken, unbind } from "../../core/request/bound-token.ts";
import type { Identity } from "../../core/request/identity.ts";
import type { TokenRefusal, TokenVerdict } from "../../core/request/token-verifier.ts";
import type { RememberProof } from "../../core/shared-parts.ts";
import type { LoopBudget } from "../../lib/async/loop-budget.ts";
import type { Clock } from "../../lib/clock.ts";
import { ASYMMETRIC_ALGORITHMS, isSignedWith } from "../keys/algorithms.ts";
import { derivedKey, type SigningKeys } from "../keys/key-ring.ts";
import type { UsedProofs } from "./proof-memory.ts";
import { type ProofKey, readProof, readProofHeader } from "./proof-text.ts";
import { createHmac, timingSafeEqual } from "node:crypto";

/** A nonce counts in the slot in which it was made, and in the next one, in milliseconds. */
const SLOT_MS = 120_000;

/** The nonces for proofs (RFC 9449 §9): nothing is stored, and all threads and replicas with the same keys make the same. */
function createNonces({ keys, clock }: Pick<ProofsOptions, "keys" | "clock">) {
  const slotNow = (): number => Math.floor(clock.now() / SLOT_MS);

  function madeIn(slot: number): Buffer | undefined {
    const { signing } = keys;
    if (signing === undefined) return undefined;
    return createHmac("sha256", derivedKey(signing.key, "DPoP nonce"))
      .update(String(slot))
      .digest();
  }

  return {
    /** Returns the nonce for now; undefined if no key signs. */
    current: (): string | undefined => madeIn(slotNow())?.toString("base64url"),

    /** Returns when a nonce ends, in milliseconds since the epoch; undefined if it is not one of ours, or has ended. */
    endOf(nonce: string): number | undefined {
      const sent = Buffer.from(nonce, "base64url");
      const slot = slotNow();
      const found = [slot, slot - 1].find((each) => {
        const made = madeIn(each);
        return made?.length === sent.length && timingSafeEqual(made, sent);
      });
      return found && (found + 2) * SLOT_MS;
    },
  };
}

/** What a request brings to prove that its client has a key. */
export interface SentProof {
  /** The values of its `DPoP` fields. */
  readonly sent: readonly string[];
  readonly method: string;
  /** Whether a URL is that of the request, whatever its query (RFC 9449 §4.3), and ours. */
  readonly isTarget: (url: string) => boolean;
  /** The thumbprint of the client's certificate; undefined without one. */
  readonly certificate: string | undefined;
}

/** What a request with a bound token brings. */
interface ProofRequest extends SentProof {
  /** Whether its token comes with the scheme `DPoP`. */
  readonly isDpop: boolean;
  /** The caller that an earlier decision about the same request has accepted. */
  readonly earlier: Identity | undefined;
  /** Whether the proof is not remembered. */
  readonly dryRun: boolean;
}

/** A key that a client has, and the proof of that. */
export interface ProvenKey {
  /** Its thumbprint. */
  readonly jkt: string;
  /** Uses the proof up. A client that may get no token must not fill the memory for proofs, so this comes last. */
  readonly use: (caller: string) => Promise<TokenRefusal | undefined>;
}

interface ProofsOptions {
  /** The keys from which nonces are made. */
  readonly keys: Pick<SigningKeys, "signing">;
  /** Shared with the signatures of tokens. */
  readonly budget: LoopBudget;
  /** For logins: strangers send those, and nobody with a token may wait for them. */
  readonly loginBudget: LoopBudget;
  /** What all threads have seen. In a gate without clients, nothing is remembered. */
  readonly used: UsedProofs | undefined;
  /** Remembers a proof for all replicas. */
  readonly remember: RememberProof | undefined;
  readonly clock: Clock;
}

/** A proof that was read, and its text. */
interface ReadProof {
  readonly text: string;
  readonly header: string;
  readonly jti: string;
  /** When it can no longer be used, in milliseconds since the epoch. */
  readonly until: number;
}

/** The key of a client, and the header of its proofs, as written: each client repeats it. */
interface KnownKey {
  readonly header: string;
  readonly key: ProofKey;
}

/** Undefined if the proof counts. */
type Checked = TokenRefusal | undefined;

/** Maximum number of known keys of clients, and of the characters of their headers. An imported key takes about 2 KB. */
const MOST_KEYS = 5_000;
const MOST_CHARACTERS = 4 * 1024 ** 2;
/** How old a proof may be, and how far ahead a client's clock, in milliseconds. */
const BACK_MS = 60_000;
const AHEAD_MS = 5_000;
/** How far the clock of another replica may be behind ours, in milliseconds: it accepts a proof for so much longer. */
const BEHIND_MS = 5_000;

const UNBOUND: TokenRefusal = { step: "proof", reason: "unbound" };
const MISSING = missing("there is no DPoP header");

/** Checks that the clients of bound tokens have the key (RFC 9449 §4.3, §7) or the certificate (RFC 8705 §3). */
export class Proofs {
  /** Separated by blanks. */
  readonly algorithms = ASYMMETRIC_ALGORITHMS.join(" ");
  readonly #options: ProofsOptions;
  readonly #nonces: ReturnType<typeof createNonces>;
  /** By thumbprint, each with one header, so that nobody can take up more than one place for each token. */
  readonly #known = new LRUCache<string, KnownKey>({
    max: MOST_KEYS,
    maxSize: MOST_CHARACTERS,
    sizeCalculation: ({ header }) => header.length,
  });

  constructor(options: ProofsOptions) {
    this.#options = options;
    this.#nonces = createNonces(options);
  }

  /** Returns the caller of a bound token, if the request proves that it comes from them. */
  prove(token: BoundToken, request: ProofRequest): TokenVerdict | Promise<TokenVerdict> {
    const { jkt, x5t } = token.bound;
    const { earlier, dryRun } = request;
    // Its proof was used then, and may have ended since.
    if (earlier?.bound && earlier.bound.jkt === jkt && earlier.bound.x5t === x5t) {
      return unbind(token);
    }
    if (x5t !== undefined && x5t !== request.certificate) {
      return missing("the connection has not the client certificate that the token is bound to");
    }
    if (jkt === undefined) return request.isDpop ? UNBOUND : unbind(token);
    // A thief may not send it as a bearer token (RFC 9449 §7.2).
    if (!request.isDpop) return missing("a token that is bound to a key needs Authorization: DPoP");
    const read = this.#read(request, token.digest);
    if ("reason" in read) return read;
    const known = this.#known.get(jkt);
    const proven = (refusal: Checked): TokenVerdict => refusal ?? unbind(token);
    const { issuer, subject } = token.claims;
    const use = (by: ProofKey): Checked | Promise<Checked> =>
      dryRun ? undefined : this.#use(read, by, `${issuer}\0${subject}`);
    if (known?.header !== read.header) return this.#proveNew(read, jkt, use).then(proven);
    const { key } = known;
    const { budget } = this.#options;
    const work = (): Checked | Promise<Checked> =>
      isSigned(read, key) ? use(key) : WRONG_SIGNATURE;
    // In a later turn if this one has had enough of them.
    const checked = budget.canRunNow
      ? budget.runNow(work)
      : budget.enqueue(work).then((result) => result);
    return checked instanceof Promise ? checked.then(proven) : proven(checked);
  }

  /** Returns the key to which a new token is to be bound, or why the proof does not count. */
  async proveKey(request: SentProof): Promise<ProvenKey | TokenRefusal> {
    const read = this.#read(request, undefined);
    if ("reason" in read) return read;
    const key = await this.#newKey(read, undefined, this.#options.loginBudget);
    if ("reason" in key) return key;
    return { jkt: key.thumbprint, use: async (caller) => this.#use(read, key, caller) };
  }

  /** Reads a proof, from what is cheap to what is dear. @param ath undefined for a proof without a token. */
  #read({ sent, method, isTarget }: SentProof, ath: string | undefined): ReadProof | TokenRefusal {
    const [text, another] = sent;
    if (text === undefined) return MISSING;
    if (another !== undefined) return invalid("there are two DPoP headers");
    const claims = readProof(text);
    if (typeof claims === "string") return invalid(claims);
    if (claims.htm !== method) return invalid('"htm" is not the method of the request');
    if (ath !== undefined && claims.ath !== ath) return invalid('"ath" is that of another token');
    if (!isTarget(claims.htu)) {
      return invalid('"htu" is not the URL of the request, or no route names its host');
    }
    const until = this.#endOf(claims.iat, claims.nonce);
    if (typeof until !== "number") return until;
    return { text, header: claims.header, jti: claims.jti, until };
  }

  /** Returns when a proof ends: with its nonce, whatever the client's clock says, else by its `iat`. */
  #endOf(iat: number, nonce: string | undefined): number | TokenRefusal {
    const now = this.#options.clock.now();
    const isTimely = iat * 1000 > now - BACK_MS && iat * 1000 <= now + AHEAD_MS;
    const until =
      nonce === undefined ? isTimely && iat * 1000 + BACK_MS : this.#nonces.endOf(nonce);
    if (typeof until === "number") return until;
    const fresh = this.#nonces.current();
    return {
      step: "proof",
      reason: "proof_nonce",
      dpop: fresh === undefined ? "invalid" : { nonce: fresh },
      detail:
        nonce === undefined
          ? '"iat" is not the current time, and it has no nonce'
          : "its nonce has ended, or is not from here",
    };
  }

  async #proveNew(
    read: ReadProof,
    jkt: string,
    use: (key: ProofKey) => Checked | Promise<Checked>,
  ): Promise<Checked> {
    const key = await this.#newKey(read, jkt, this.#options.budget);
    if ("reason" in key) return key;
    // Who has no token must not evict the keys of others.
    this.#known.set(jkt, { header: read.header, key });
    return use(key);
  }

  /** Checks a proof with a key that is not known yet. @param jkt the thumbprint that the key must have; undefined for any. */
  async #newKey(
    read: ReadProof,
    jkt: string | undefined,
    budget: LoopBudget,
  ): Promise<ProofKey | TokenRefusal> {
    const header = readProofHeader(read.header);
    if (typeof header === "string") return invalid(header);
    const thumbprint = await header.thumbprint();
    if (thumbprint === undefined) return invalid('"jwk" cannot be read');
    if (thumbprint !== (jkt ?? thumbprint)) return OTHER_KEY;
    return budget.enqueue(() => {
      const key = header.key(thumbprint);
      if (typeof key === "string") return invalid(key);
      return isSigned(read, key) ? key : WRONG_SIGNATURE;
    });
  }

  /** Uses a proof up, whose signature is right. */
  #use(
    { jti, until }: ReadProof,
    { thumbprint }: ProofKey,
    caller: string,
  ): Checked | Promise<Checked> {
    const { used, remember, clock } = this.#options;
    if (used === undefined) return undefined;
    const name = `${thumbprint}\0${jti}`;
    const now = clock.now();
    // It may have ended while it waited for its turn, and would not be remembered.
    if (now >= until) return invalid("it has ended");
    const found = used.remember(name, caller, until, now);
    if (found !== "new") return found === "full" ? FULL : REPLAYED;
    if (remember === undefined) return undefined;
    // What is not known of other replicas does not count.
    const forMs = until - now + BEHIND_MS;
    return remember(name, forMs).then((isNew) => (isNew === false ? REPLAYED : undefined));
  }
}

function isSigned({ text }: ReadProof, { key, algorithm }: ProofKey): boolean {
  return isSignedWith(text, key, algorithm);
}

const WRONG_SIGNATURE = invalid("its signature is wrong");
const OTHER_KEY = invalid('"jwk" is not the key that the token is bound to');

const REPLAYED = invalid("it was used before", "proof_replayed");
const FULL = invalid("no more proofs can be remembered at the moment", "proof_memory");

function invalid(detail: string, reason: TokenRefusal["reason"] = "proof_invalid"): TokenRefusal {
  return { step: "proof", reason, dpop: "invalid", detail };
}

function missing(detail: string): TokenRefusal {
  return { step: "proof", reason: "proof_missing", detail };
}

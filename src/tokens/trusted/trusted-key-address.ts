import { hash } from "node:crypto";
import type { IssuerState } from "../../core/issuer-state.ts";
import { GateError } from "../../core/request/errors.ts";
import { remoteFailure } from "../../lib/text/remote-error.ts";
import { codeOrMessage } from "../../lib/text/error-code.ts";
import { type JwkSet, readJwkSet } from "../keys/jwk-set.ts";
import type { KeySource } from "../keys/key-set.ts";
import { AbsentKids } from "./absent-kids.ts";
import { discoveryUrl } from "./discovery.ts";
import { Outage } from "../../lib/outage.ts";
import { lifeOf, prefetchAfter, retryAfter, STALE_FOR_MS, TIMING } from "./key-life.ts";
import { type CopyOwner, type KeySetCopy, readCopy, writeCopy } from "./key-set-copy.ts";
import { KeySetServer } from "./key-set-server.ts";
import type { KeySetAddress, TrustedIssuer, TrustedKeysContext } from "./trusted-issuer.ts";

const TIMEOUT_MS = 5_000;
/** Maximum number of tokens that wait for one fetch. If the server is slow, more would only fill memory. */
const MAX_WAITING = 100;
/** Maximum delay of a timer, in milliseconds. */
const LONGEST_MS = 2 ** 31 - 1;

/** When the keys in use were fetched, and their lifetime; milliseconds. */
type Fetched = Pick<KeySetCopy, "fetchedAt" | "lifeMs">;

/**
 * The keys that a server publishes. Fetches them at once, and again before their lifetime ends. After a failure,
 * retries after a second, then less and less often, down to once a minute. Also fetches them when a token names an
 * unknown key, but at most once in five seconds, however many such tokens arrive. While fetches fail, the last good
 * keys stay in use for `staleFor` beyond their lifetime. A copy in a file serves the next start.
 */
export class TrustedKeyAddress implements KeySource {
  readonly #address: KeySetAddress;
  readonly #trusted: TrustedIssuer;
  readonly #context: TrustedKeysContext;
  readonly #timing: typeof TIMING;
  readonly #server: KeySetServer;
  readonly #owner: CopyOwner;
  readonly #closing = new AbortController();
  readonly #outage: Outage;
  readonly #absent: AbsentKids;
  #known: JwkSet | undefined;
  #knownText: string | undefined;
  #fetched: Fetched | undefined;
  #demanded = -Infinity;
  #fetching: Promise<void> | undefined;
  #waiting = 0;
  #timer: NodeJS.Timeout | undefined;
  #expiry: NodeJS.Timeout | undefined;
  #counts = { succeeded: 0, failed: 0 };

  /** @param timing for tests. */
  constructor(
    address: KeySetAddress,
    trusted: TrustedIssuer,
    context: TrustedKeysContext,
    timing = TIMING,
  ) {
    this.#address = address;
    this.#trusted = trusted;
    this.#context = context;
    this.#timing = timing;
    const { issuer } = trusted;
    this.#server = new KeySetServer(issuer, address);
    this.#owner = { issuer, source: address.url ?? discoveryUrl(issuer) };
    this.#outage = new Outage(context.clock);
    this.#absent = new AbsentKids(timing.onDemand);
    this.#takeCopy();
    void this.#fetchNow();
  }

  current(): JwkSet["keys"] | undefined {
    if (this.#context.clock.now() >= this.#staleAt()) this.#expire();
    return this.#known?.keys;
  }

  get fetches(): NonNullable<IssuerState["fetches"]> {
    const fetched = this.#fetched;
    const stale =
      fetched !== undefined && this.#context.clock.now() >= fetched.fetchedAt + fetched.lifeMs;
    return { fetchedAt: fetched?.fetchedAt, stale, ...this.#counts };
  }

  readAt(): number | undefined {
    return this.#fetched?.fetchedAt;
  }

  async refresh(kid?: string): Promise<void> {
    const now = this.#context.clock.monotonic();
    if (this.#known !== undefined && kid !== undefined && this.#absent.rests(kid, now)) return;
    if (this.#fetching === undefined) {
      if (now - this.#demanded < this.#timing.onDemand) return;
      this.#demanded = now;
    }
    if (this.#waiting >= MAX_WAITING) throw new GateError("keys_unusable", { retryAfter: 5 });
    this.#waiting += 1;
    await this.#fetchNow();
    this.#waiting -= 1;
    if (kid !== undefined && !this.#known?.keys.some((key) => key.kid === kid)) {
      this.#absent.add(kid, now);
    }
  }

  close(): void {
    this.#closing.abort();
    clearTimeout(this.#timer);
    clearTimeout(this.#expiry);
    this.#server.close();
  }

  /** When the keys in use become too old, in milliseconds since the epoch. */
  #staleAt(): number {
    if (this.#fetched === undefined) return Infinity;
    const { fetchedAt, lifeMs } = this.#fetched;
    return fetchedAt + lifeMs + (this.#address.staleFor ?? STALE_FOR_MS);
  }

  /** Runs one fetch at a time. Never rejects. */
  #fetchNow(): Promise<void> {
    clearTimeout(this.#timer);
    this.#fetching ??= this.#fetchOnce().then((nextMs) => {
      this.#fetching = undefined;
      if (this.#closing.signal.aborted) return;
      this.#timer = setTimeout(() => void this.#fetchNow(), nextMs).unref();
    });
    return this.#fetching;
  }

  /** @returns the milliseconds until the next fetch. */
  async #fetchOnce(): Promise<number> {
    const { signal } = this.#closing;
    try {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
      const { text, lifeMs: said } = await this.#server.fetch(limited);
      if (signal.aborted) return 0;
      const lifeMs = lifeOf(said, this.#timing);
      const fetched = { text, lifeMs, fetchedAt: this.#context.clock.now() };
      this.#accept(fetched);
      this.#keepCopy(fetched);
      this.#counts.succeeded += 1;
      this.#logRecovery();
      return prefetchAfter(lifeMs);
    } catch (error) {
      if (signal.aborted) return 0;
      this.#counts.failed += 1;
      this.#logFailure(remoteFailure(error));
      return retryAfter(this.#outage.failures, this.#timing);
    }
  }

  #logFailure(reason: string): void {
    const outage = this.#outage.failed();
    if (outage === undefined) return;
    const { attempts } = outage;
    const keys = this.#known?.keys.length ?? 0;
    this.#context.log.warn("the keys of a trusted issuer could not be fetched", {
      issuer: this.#trusted.issuer,
      reason,
      keys,
      attempts,
    });
  }

  #logRecovery(): void {
    const ended = this.#outage.succeeded();
    if (ended === undefined) return;
    const fields = { issuer: this.#trusted.issuer, attempts: ended.attempts };
    this.#context.log.info("the keys of a trusted issuer can be fetched again", fields);
  }

  /** @throws an `Error` if the response is not a key set. */
  #accept({ text, fetchedAt, lifeMs }: KeySetCopy): void {
    const { log, changed } = this.#context;
    const { issuer, algorithms } = this.#trusted;
    const print = hash("sha256", text, "base64url");
    const same = print === this.#knownText; // parsing it takes up to 40 ms
    const latest = same ? undefined : readJwkSet(text, algorithms);
    this.#fetched = { fetchedAt, lifeMs };
    this.#expireInTime();
    if (latest === undefined) return;
    this.#knownText = print;
    if (latest.fingerprint === this.#known?.fingerprint) return;
    this.#known = latest;
    this.#absent.clear();
    log.info("the keys of a trusted issuer were loaded", { issuer, keys: latest.keys.length });
    if (latest.ignored.length > 0) {
      log.warn("some keys of a trusted issuer were ignored", { issuer, reasons: latest.ignored });
    }
    changed();
  }

  #expireInTime(): void {
    clearTimeout(this.#expiry);
    const leftMs = Math.min(this.#staleAt() - this.#context.clock.now(), LONGEST_MS);
    this.#expiry = setTimeout(() => {
      if (this.current() !== undefined) this.#expireInTime();
    }, leftMs).unref();
  }

  /** Drops keys that no fetch has confirmed for too long, and with them every token that they verified. */
  #expire(): void {
    if (this.#known === undefined) return;
    const { issuer } = this.#trusted;
    this.#known = undefined;
    this.#knownText = undefined;
    this.#fetched = undefined;
    this.#context.log.error("the keys of a trusted issuer are too old to be used", { issuer });
    this.#context.changed();
  }

  #takeCopy(): void {
    const { cacheFile } = this.#address;
    if (cacheFile === undefined) return;
    const now = this.#context.clock.now();
    try {
      const copy = readCopy(cacheFile, this.#owner, now);
      if (copy === undefined) return;
      const lifeMs = Math.min(copy.lifeMs, this.#timing.life.max);
      if (now >= copy.fetchedAt + lifeMs + (this.#address.staleFor ?? STALE_FOR_MS)) return;
      this.#accept({ ...copy, lifeMs });
    } catch (error) {
      this.#tellOfCopy("read", cacheFile, error);
    }
  }

  #keepCopy(copy: KeySetCopy): void {
    const { cacheFile } = this.#address;
    if (cacheFile === undefined || this.#context.keepsCopies !== true) return;
    writeCopy(cacheFile, this.#owner, copy).catch((error: unknown) =>
      this.#tellOfCopy("written", cacheFile, error),
    );
  }

  #tellOfCopy(what: "read" | "written", file: string, error: unknown): void {
    const { issuer } = this.#trusted;
    const fields = { issuer, file, reason: codeOrMessage(error) };
    const { log } = this.#context;
    if (what === "read")
      log.warn("the copy of the keys of a trusted issuer cannot be read", fields);
    else log.warn("the copy of the keys of a trusted issuer cannot be written", fields);
  }
}

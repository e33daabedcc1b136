import { hash } from "node:crypto";
import { GateError } from "../../core/request/errors.ts";
import { fetchKeySet } from "./fetch-key-set.ts";
import { FetchOutage } from "./fetch-outage.ts";
import { type JwkSet, readJwkSet } from "../keys/jwk-set.ts";
import type { KeySource } from "../keys/key-set.ts";
import type { TrustedIssuer, TrustedKeysContext } from "./trusted-issuer.ts";

/** Milliseconds. */
interface FetchTiming {
  /** From a success to the next fetch. */
  readonly refresh: number;
  /** From the first failure to the next fetch; doubled with each further failure, up to `lastRetry`. */
  readonly firstRetry: number;
  readonly lastRetry: number;
  /** Minimum time between two fetches that tokens cause. */
  readonly onDemand: number;
}

const TIMING: FetchTiming = {
  refresh: 600_000,
  firstRetry: 1_000,
  lastRetry: 60_000,
  onDemand: 5_000,
};
const TIMEOUT_MS = 5_000;
/** Maximum number of tokens that wait for one fetch. Behind a slow address, more of them would only fill memory. */
const MAX_WAITING = 100;
/** Fraction by which intervals vary, so that replicas that start together soon fetch at different times. */
const JITTER = 0.2;

/**
 * The keys that an address serves. It is fetched at once, then every ten minutes. After a failure it is fetched again after
 * one second, later less often, down to once a minute. If a token names an unknown key, it is fetched too, at most once in
 * five seconds however many such tokens arrive. As long as fetches fail, the last good keys stay in use.
 */
export class TrustedKeyAddress implements KeySource {
  readonly #url: string;
  readonly #trusted: TrustedIssuer;
  readonly #context: TrustedKeysContext;
  readonly #timing: FetchTiming;
  readonly #closing = new AbortController();
  readonly #outage: FetchOutage;
  #known: JwkSet | undefined;
  #knownText: string | undefined;
  #demanded = -Infinity;
  #fetching: Promise<void> | undefined;
  #waiting = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param timing for tests. */
  constructor(url: string, trusted: TrustedIssuer, context: TrustedKeysContext, timing = TIMING) {
    this.#url = url;
    this.#trusted = trusted;
    this.#context = context;
    this.#timing = timing;
    this.#outage = new FetchOutage(trusted.issuer, context);
    void this.#fetchNow();
  }

  current(): JwkSet["keys"] | undefined {
    return this.#known?.keys;
  }

  async refresh(): Promise<void> {
    if (this.#fetching === undefined) {
      const now = this.#context.clock.monotonic();
      if (now - this.#demanded < this.#timing.onDemand) return;
      this.#demanded = now;
    }
    if (this.#waiting >= MAX_WAITING) throw new GateError("keys_unusable", { retryAfter: 5 });
    this.#waiting += 1;
    await this.#fetchNow();
    this.#waiting -= 1;
  }

  close(): void {
    this.#closing.abort();
    clearTimeout(this.#timer);
  }

  /** Runs one fetch at a time. Never rejects. */
  #fetchNow(): Promise<void> {
    clearTimeout(this.#timer);
    this.#fetching ??= this.#fetchOnce().then((nextMs) => {
      this.#fetching = undefined;
      if (this.#closing.signal.aborted) return;
      this.#timer = setTimeout(() => void this.#fetchNow(), jittered(nextMs)).unref();
    });
    return this.#fetching;
  }

  /** @returns the milliseconds until the next fetch. */
  async #fetchOnce(): Promise<number> {
    const { signal } = this.#closing;
    try {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
      this.#accept(await fetchKeySet(this.#url, limited));
    } catch (error) {
      if (signal.aborted) return 0;
      const failures = this.#outage.failed(error, this.#known?.keys.length ?? 0);
      return Math.min(this.#timing.firstRetry * 2 ** (failures - 1), this.#timing.lastRetry);
    }
    this.#outage.succeeded();
    return this.#timing.refresh;
  }

  #accept(text: string): void {
    const { log, changed } = this.#context;
    const { issuer, algorithms } = this.#trusted;
    const print = hash("sha256", text, "base64url");
    if (print === this.#knownText) return; // reading it costs up to 40 ms
    const latest = readJwkSet(text, algorithms);
    this.#knownText = print;
    if (latest.fingerprint === this.#known?.fingerprint) return;
    this.#known = latest;
    log.info("the keys of a trusted issuer were loaded", { issuer, keys: latest.keys.length });
    if (latest.ignored.length > 0) {
      log.warn("some keys of a trusted issuer were ignored", { issuer, reasons: latest.ignored });
    }
    changed();
  }
}

function jittered(milliseconds: number): number {
  return milliseconds * (1 + JITTER * (2 * Math.random() - 1));
}

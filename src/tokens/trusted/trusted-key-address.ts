import { hash, randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Log } from "../../core/log.ts";
import { LONGEST_TIMER_MS } from "../../lib/clock.ts";
import type { IssuerState } from "../../core/status.ts";
import { GateError } from "../../core/request/errors.ts";
import { codeOrMessage, remoteFailure, systemCode } from "../../lib/text/error-code.ts";
import { type JwkSet, type KeySource, readJwkSet } from "../keys/key-set.ts";
import { discoveryUrl, KeySetServer } from "./key-set-server.ts";
import { Outage } from "../../lib/outage.ts";
import type { KeySetAddress, TrustedIssuer, TrustedKeysContext } from "./trusted-keys.ts";
import { replaceFile } from "../../lib/files/private-file.ts";
import { readRegularFileSync, UNLINKED } from "../../lib/files/regular-file.ts";
import { jsonObjectIn } from "../../lib/text/strict-json.ts";

/** The most key ids that were not found. Longer ones are not remembered, since clients choose them. */
const MOST_ABSENT = 1_000;
const LONGEST_ABSENT = 256;
/** The longest time for which one rests, in milliseconds. */
const LONGEST_REST_MS = 300_000;

/** The times of fetching keys, in milliseconds. */
export const TIMING = {
  /** How long keys are fresh after a fetch: the bounds for what the server states, and the default. */
  life: { min: 60_000, usual: 600_000, max: 3_600_000 },
  /** Delay after the first failure. Doubles with each further failure, up to `lastRetry`. */
  firstRetry: 1_000,
  lastRetry: 60_000,
  /** Minimum time between two fetches that tokens cause. */
  onDemand: 5_000,
};

/** Default time for which the last good keys stay in use after their lifetime while fetches fail. */
const STALE_FOR_MS = 86_400_000;

/** A copy of a fetched key set in a file, for a start while the server is down. */
interface KeySetCopy {
  readonly text: string;
  /** When it was fetched, in milliseconds since the epoch. */
  readonly fetchedAt: number;
  /** Its lifetime from then on, in milliseconds. */
  readonly lifeMs: number;
}

/** The owner of a copy. No other issuer may use it. */
interface CopyOwner {
  readonly issuer: string;
  /** The configured address, or the address of the discovery document. */
  readonly source: string;
}

const LARGEST = 524_288;
/** How far the time of a copy may be ahead of our clock, in milliseconds. */
const AHEAD_MS = 60_000;

/**
 * Reads a copy; undefined if there is none.
 *
 * Anybody who can write this file can sign tokens in the name of the issuer. So the file must belong to this user,
 * nobody else may be able to write to it, and its content is checked like a response from the server.
 *
 * @throws an `Error` that says why the copy cannot be used, without quoting it.
 */
function readCopy(path: string, owner: CopyOwner, nowMs: number): KeySetCopy | undefined {
  const text = privateText(path);
  if (text === undefined) return undefined;
  const value = jsonObjectIn(text);
  if (value === undefined) throw new Error("it is not a JSON object");
  if (value["issuer"] !== owner.issuer || value["source"] !== owner.source) {
    throw new Error("it is a copy of other keys");
  }
  const { fetchedAt, lifeMs, keys } = value;
  if (typeof fetchedAt !== "number" || typeof lifeMs !== "number" || typeof keys !== "string") {
    throw new Error("it is not a copy of a key set");
  }
  if (!(fetchedAt <= nowMs + AHEAD_MS && lifeMs >= 0 && lifeMs <= nowMs)) {
    throw new Error("its times are impossible");
  }
  return { text: keys, fetchedAt: Math.min(fetchedAt, nowMs), lifeMs };
}

function privateText(path: string): string | undefined {
  try {
    const { stats, text } = readRegularFileSync(path, LARGEST, UNLINKED);
    const own = process.getuid?.();
    if (own === undefined || (stats.uid === own && (stats.mode & 0o022) === 0)) return text;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw error;
  }
  throw new Error("others can write to it");
}

export function logLoaded(issuer: string, { keys, ignored }: JwkSet, log: Log): void {
  log.info("the keys of a trusted issuer were loaded", { issuer, keys: keys.length });
  if (ignored.length > 0) {
    log.warn("some keys of a trusted issuer were ignored", { issuer, reasons: ignored });
  }
}

const TIMEOUT_MS = 5_000;
/** Maximum number of tokens that wait for one fetch. If the server is slow, more would only fill memory. */
const MAX_WAITING = 100;

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
  /** Key ids that were not found. Each rests for `onDemand`, then twice as long each time. Monotonic, in milliseconds. */
  readonly #absent = new LRUCache<string, { readonly restMs: number; readonly until: number }>({
    max: MOST_ABSENT,
  });
  #known: JwkSet | undefined;
  #knownText: string | undefined;
  /** When the keys in use were fetched, and their lifetime. */
  #fetched: Omit<KeySetCopy, "text"> | undefined;
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
    const failingSince = this.#outage.since;
    return { fetchedAt: fetched?.fetchedAt, stale, failingSince, ...this.#counts };
  }

  readAt(): number | undefined {
    return this.#fetched?.fetchedAt;
  }

  async refresh(kid?: string): Promise<void> {
    const now = this.#context.clock.monotonic();
    const absent = kid === undefined ? undefined : this.#absent.get(kid);
    if (this.#known !== undefined && absent !== undefined && now < absent.until) return;
    if (this.#fetching === undefined) {
      if (now - this.#demanded < this.#timing.onDemand) return;
      this.#demanded = now;
    }
    if (this.#waiting >= MAX_WAITING) throw new GateError("keys_unusable", { retryAfter: 5 });
    this.#waiting += 1;
    await this.#fetchNow();
    this.#waiting -= 1;
    if (kid === undefined || kid.length > LONGEST_ABSENT) return;
    if (this.#known?.keys.some((key) => key.kid === kid) === true) return;
    const before = this.#absent.get(kid);
    const restMs = before ? Math.min(before.restMs * 2, LONGEST_REST_MS) : this.#timing.onDemand;
    this.#absent.set(kid, { restMs, until: now + restMs });
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
    const { clock, log } = this.#context;
    const { issuer } = this.#trusted;
    try {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
      const { min, usual, max } = this.#timing.life;
      const { text, lifeMs: said = usual } = await this.#server.fetch(limited);
      if (signal.aborted) return 0;
      const lifeMs = Math.min(Math.max(said, min), max);
      const fetched = { text, lifeMs, fetchedAt: clock.now() };
      this.#accept(fetched);
      this.#keepCopy(fetched);
      this.#counts.succeeded += 1;
      const ended = this.#outage.succeeded();
      if (ended !== undefined) {
        const { attempts } = ended;
        log.info("the keys of a trusted issuer can be fetched again", { issuer, attempts });
      }
      // Before it ends, and at random, so that replicas that start together soon fetch at different times.
      return lifeMs * 0.9 * (1 - 0.1 * Math.random());
    } catch (error) {
      if (signal.aborted) return 0;
      this.#counts.failed += 1;
      const outage = this.#outage.failed();
      if (outage !== undefined) {
        const { attempts } = outage;
        const fields = {
          issuer,
          reason: remoteFailure(error),
          keys: this.#known?.keys.length ?? 0,
        };
        log.warn("the keys of a trusted issuer could not be fetched", { ...fields, attempts });
      }
      const { firstRetry, lastRetry } = this.#timing;
      // A random half of it, so that replicas do not try again together.
      const backoffMs = Math.min(firstRetry * 2 ** (this.#outage.failures - 1), lastRetry);
      return backoffMs * (1 - 0.5 * Math.random());
    }
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
    logLoaded(issuer, latest, log);
    changed();
  }

  #expireInTime(): void {
    clearTimeout(this.#expiry);
    const leftMs = Math.min(this.#staleAt() - this.#context.clock.now(), LONGEST_TIMER_MS);
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
      const { issuer } = this.#owner;
      const fields = { issuer, file: cacheFile, reason: codeOrMessage(error) };
      this.#context.log.warn("the copy of the keys of a trusted issuer cannot be read", fields);
    }
  }

  #keepCopy(copy: KeySetCopy): void {
    const { cacheFile } = this.#address;
    if (cacheFile === undefined || this.#context.keepsCopies !== true) return;
    const { text: keys, fetchedAt, lifeMs } = copy;
    const content = `${JSON.stringify({ ...this.#owner, fetchedAt, lifeMs, keys })}\n`;
    // Several threads may do so at the same time.
    const draft = `${cacheFile}.${randomBytes(6).toString("hex")}.new`;
    replaceFile(cacheFile, draft, content).catch((error: unknown) => {
      const { issuer } = this.#owner;
      const fields = { issuer, file: cacheFile, reason: codeOrMessage(error) };
      this.#context.log.warn("the copy of the keys of a trusted issuer cannot be written", fields);
    });
  }
}

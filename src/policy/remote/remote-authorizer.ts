import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { type RemoteCheckObserver, STALE_STEP_MS } from "../../core/remote-check.ts";
import { GateError } from "../../core/request/errors.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Identity } from "../../core/request/identity.ts";
import { FairQuestions } from "../../lib/async/fair-questions.ts";
import { SingleFlight } from "../../lib/async/single-flight.ts";
import type { Clock } from "../../lib/clock.ts";
import { NotAskedError, remoteFailure } from "../../lib/text/error-code.ts";
import type { AuthorizationClient, AuthorizationSettings } from "./authorizer-kinds.ts";

export interface AuthorizerOptions extends Pick<
  AuthorizationSettings,
  "timeout" | "cache" | "onError"
> {
  readonly client: AuthorizationClient;
  /** How long a positive answer counts after that while the server cannot be asked, in milliseconds. */
  readonly staleFor: number;
  readonly clock: Clock;
  readonly observer: RemoteCheckObserver;
}

/** The maximum number of cached answers. Each takes about 200 bytes, since the key is a hash of the question. */
const MAX_ENTRIES = 10_000;
/** How long a no is cached at most, in milliseconds: the caller may just have been granted the permission. */
const LONGEST_NO_MS = 5_000;
/** The maximum number of running and waiting questions, for all callers together and for each caller. */
const MOST = 256;
const MOST_OF_CALLER = 128;

interface Remembered {
  readonly allowed: boolean;
  /** In monotonic milliseconds. */
  readonly until: number;
  /** When it ends for good, in monotonic milliseconds. */
  readonly ends: number;
  /** Whether the server was away when it was to be asked again. */
  readonly isStale?: true;
}

/**
 * Asks another server and caches its answers. Concurrent requests with the same question share it, and callers share
 * the server fairly. A failure never allows a request.
 */
export class RemoteAuthorizer {
  readonly #options: AuthorizerOptions;
  readonly #answers = new LRUCache<string, Remembered>({ max: MAX_ENTRIES });
  readonly #underWay = new SingleFlight<boolean>();
  readonly #questions: FairQuestions;

  constructor(options: AuthorizerOptions) {
    this.#options = options;
    const { connections: atOnce } = options.client;
    this.#questions = new FairQuestions({ atOnce, most: MOST, mostOfClient: MOST_OF_CALLER });
  }

  /**
   * Returns whether the caller may make the request: synchronously if the answer is cached, else a promise.
   *
   * @throws or rejects with GateError `authorization_unavailable` if the server cannot decide.
   */
  allows(request: GateRequest, identity: Identity): boolean | Promise<boolean> {
    const { client, observer, clock } = this.#options;
    const questions = client.questions(request, identity);
    if (questions === undefined) return false;
    const unknown: [key: string, question: string][] = [];
    let isStale = false;
    for (const question of questions) {
      const key = hash("sha256", question, "base64url");
      const known = this.#answers.get(key);
      if (known === undefined || clock.monotonic() >= known.until) {
        unknown.push([key, question]);
      } else if (known.allowed) {
        isStale ||= known.isStale === true;
      } else {
        observer.cached();
        return false;
      }
    }
    if (unknown.length > 0) return this.#askAll(unknown, identity);
    if (isStale) observer.stale();
    else observer.cached();
    return true;
  }

  close(): void {
    this.#options.client.close();
  }

  async #askAll(
    questions: readonly (readonly [key: string, question: string])[],
    { issuer, subject }: Identity,
  ): Promise<boolean> {
    const caller = JSON.stringify([issuer, subject]);
    const answers = questions.map(([key, question]) =>
      this.#underWay.run(key, () => this.#ask(key, question, caller)),
    );
    return (await Promise.all(answers)).every(Boolean);
  }

  async #ask(key: string, question: string, caller: string): Promise<boolean> {
    const { client, timeout, cache, staleFor, clock, observer } = this.#options;
    const began = clock.monotonic();
    const seconds = (): number => (clock.monotonic() - began) / 1000;
    try {
      const allowed = await this.#questions.ask(caller, AbortSignal.timeout(timeout), () =>
        client.ask(question, AbortSignal.timeout(timeout)),
      );
      observer.answered(allowed, seconds());
      const forMs = allowed ? cache : Math.min(cache, LONGEST_NO_MS);
      const until = clock.monotonic() + forMs;
      const ends = allowed ? until + staleFor : until;
      // A no ends an earlier yes.
      if (ends > clock.monotonic()) this.#answers.set(key, { allowed, until, ends });
      else this.#answers.delete(key);
      return allowed;
    } catch (error) {
      observer.failed(remoteFailure(error), seconds());
      // Callers who fill their own queue are not an outage.
      if (!(error instanceof NotAskedError) && this.#standsIn(key)) return true;
      if (this.#options.onError === "deny") return false;
      throw new GateError("authorization_unavailable", { retryAfter: 1 });
    }
  }

  /** Whether an earlier yes stands in for an answer; it does so for a while, in which the server is not asked. */
  #standsIn(key: string): boolean {
    const { clock, observer } = this.#options;
    const known = this.#answers.peek(key);
    const now = clock.monotonic();
    if (known?.allowed !== true || now >= known.ends) return false;
    const until = Math.min(known.ends, now + STALE_STEP_MS);
    this.#answers.set(key, { ...known, until, isStale: true });
    observer.stale();
    return true;
  }
}

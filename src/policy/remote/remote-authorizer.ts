import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { RemoteCheckObserver } from "../../core/remote-check.ts";
import type { Authorizer } from "../../core/route/authorizer.ts";
import { GateError } from "../../core/request/errors.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Identity } from "../../core/request/identity.ts";
import { SingleFlight } from "../../lib/async/single-flight.ts";
import type { Clock } from "../../lib/clock.ts";
import { RemoteError, remoteFailure } from "../../lib/http/remote-client.ts";

/** What is specific to a kind. */
export interface AuthorizationKind {
  /**
   * Returns what has to be asked about a request, as the texts that are sent: all must be allowed. Undefined if the caller
   * is refused without a question.
   */
  questions(request: GateRequest, identity: Identity): readonly string[] | undefined;
  /** Asks one of them. @throws RemoteError, or the system's error. */
  ask(question: string, signal: AbortSignal): Promise<boolean>;
  close(): void;
}

export interface AuthorizerOptions {
  readonly kind: AuthorizationKind;
  /** How long an answer may take, in milliseconds. */
  readonly timeout: number;
  /** How long a yes is remembered, in milliseconds; 0 for not at all. */
  readonly cache: number;
  /** What a request gets that nobody can decide about. */
  readonly onError: "unavailable" | "deny";
  readonly clock: Clock;
  readonly observer: RemoteCheckObserver;
}

/** Remembered answers, each some 200 bytes whatever was asked: the key is a hash. */
const MAX_ENTRIES = 10_000;
/** A no is remembered for less long: somebody may just have been given a right. */
const LONGEST_NO_MS = 5_000;
/** Questions that may be under way. Behind a slow server, more of them would only fill memory. */
const MAX_UNDER_WAY = 256;

interface Remembered {
  readonly allowed: boolean;
  /** Monotonic, milliseconds. */
  readonly until: number;
}

/** Asks another server, each question once at a time, and remembers its answers for a while. Whatever fails is no yes. */
export class RemoteAuthorizer implements Authorizer {
  readonly #options: AuthorizerOptions;
  readonly #answers = new LRUCache<string, Remembered>({ max: MAX_ENTRIES });
  readonly #underWay = new SingleFlight<boolean>();
  #asking = 0;

  constructor(options: AuthorizerOptions) {
    this.#options = options;
  }

  allows(request: GateRequest, identity: Identity): boolean | Promise<boolean> {
    const { kind, observer, clock } = this.#options;
    const questions = kind.questions(request, identity);
    if (questions === undefined) return false;
    const unknown: [key: string, question: string][] = [];
    for (const question of questions) {
      const key = hash("sha256", question, "base64url");
      const known = this.#answers.get(key);
      if (known === undefined || clock.monotonic() >= known.until) unknown.push([key, question]);
      else if (!known.allowed) return this.#cached(false);
    }
    if (unknown.length > 0) return this.#askAll(unknown);
    observer.cached();
    return true;
  }

  close(): void {
    this.#options.kind.close();
  }

  #cached(allowed: boolean): boolean {
    this.#options.observer.cached();
    return allowed;
  }

  async #askAll(
    questions: readonly (readonly [key: string, question: string])[],
  ): Promise<boolean> {
    const answers = questions.map(([key, question]) =>
      this.#underWay.run(key, () => this.#ask(key, question)),
    );
    return (await Promise.all(answers)).every(Boolean);
  }

  async #ask(key: string, question: string): Promise<boolean> {
    const { kind, timeout, cache, clock, observer } = this.#options;
    const began = clock.monotonic();
    const seconds = (): number => (clock.monotonic() - began) / 1000;
    this.#asking += 1;
    try {
      if (this.#asking > MAX_UNDER_WAY) throw new RemoteError("too many questions at once");
      const allowed = await kind.ask(question, AbortSignal.timeout(timeout));
      observer.answered(allowed, seconds());
      const forMs = allowed ? cache : Math.min(cache, LONGEST_NO_MS);
      if (forMs > 0) this.#answers.set(key, { allowed, until: clock.monotonic() + forMs });
      return allowed;
    } catch (error) {
      observer.failed(remoteFailure(error), seconds());
      if (this.#options.onError === "deny") return false;
      throw new GateError("authorization_unavailable", { retryAfter: 1 });
    } finally {
      this.#asking -= 1;
    }
  }
}

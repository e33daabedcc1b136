import { createHmac, randomBytes } from "node:crypto";
import type { Log } from "../core/log.ts";
import type { Observer } from "../core/observer.ts";
import { GateError, type Reason } from "../core/request/errors.ts";
import type { StoreResult } from "../core/request/outcome.ts";
import type { TokenIssuer } from "../tokens/issuer.ts";
import type { LoginService, User } from "../core/login.ts";
import { type KeyedSemaphore, QueueFullError } from "../lib/async/keyed-semaphore.ts";
import type {
  AttemptOrigin,
  ClientAttempts,
  FailureThrottle,
  ThrottleLimit,
} from "./throttle/login-throttle.ts";
import type { Clock } from "../lib/clock.ts";
import { decoyHash } from "./hashing/new-hash.ts";
import type { PasswordVerifier } from "./hashing/hashing-pool.ts";
import { queueFull } from "./hashing/hashing-queue.ts";
import { verifyBounded } from "./stores/hash-store.ts";
import type { UserStore, VerifyResult } from "./stores/user-store.ts";

export interface LoginServiceParts {
  readonly credentials: CredentialCheck;
  readonly throttle: FailureThrottle;
  readonly issuer: Pick<TokenIssuer, "issue">;
  /** Where concurrent logins for the same name from the same client wait. */
  readonly turns: KeyedSemaphore;
  readonly clock: Clock;
}

/** For the log only: clients do not learn which of their attempts are counted together. */
const REASONS = {
  pair: "throttled",
  address: "throttled_address",
  account: "throttled_account",
  global: "throttled_global",
} as const satisfies Record<ThrottleLimit, string>;

/**
 * Logs a user in: throttle, then password, then token. For one name from one network, the number of concurrent
 * verifications is limited to the number of failures left, so that a burst gets no more guesses than a sequence.
 */
export function createLoginService(parts: LoginServiceParts): LoginService {
  const { credentials, throttle, issuer, turns, clock } = parts;
  return {
    async logIn(username, password, client, lifetimeMs, jkt) {
      const attempts = throttle.attemptsOf(username, client);
      let began = 0;
      const user = await turns
        .run(attempts, attempts.remaining, () => {
          began = clock.now();
          return checked(attempts, credentials, username, password);
        })
        .catch((error: unknown) => {
          throw error instanceof QueueFullError ? queueFull() : error;
        });
      const bound = jkt === undefined ? {} : { cnf: { jkt } };
      return { token: await issuer.issue(user, began, lifetimeMs, bound) };
    },
  };
}

async function checked(
  attempts: ClientAttempts,
  credentials: CredentialCheck,
  username: string,
  password: string,
): Promise<User> {
  const attempt = attempts.begin();
  if ("limit" in attempt) {
    const { limit, retryAfter } = attempt;
    const reason = REASONS[limit];
    // Only names of other stores can have failed now.
    if (credentials.isPartial()) throw unavailable(reason);
    throw new GateError("login_throttled", { reason, retryAfter });
  }
  const verdict = await credentials.check(username, password, attempt.origin).catch((error) => {
    attempt.abandoned();
    throw error;
  });
  switch (verdict.result) {
    case "found":
      attempt.succeeded();
      return verdict.user;
    case "wrong":
      attempt.failed();
      // The names that no other store knows get this answer, so a different one would tell them apart.
      if (credentials.isPartial()) throw unavailable("bad_credentials");
      throw new GateError("bad_credentials");
    case "unavailable":
      attempt.abandoned();
      throw unavailable("users_unavailable");
  }
}

/** @param reason for the log. */
function unavailable(reason: Reason): GateError {
  return new GateError("users_unavailable", { reason, retryAfter: 5 });
}

/** Reports whether a name and a password belong together. Rejects as `UserStore.verify` does. */
export interface CredentialCheck {
  check(
    username: string,
    password: string,
    origin: AttemptOrigin,
  ): Promise<Exclude<VerifyResult, { readonly result: "unknown" }>>;
  /** Whether a store is unavailable while those before it answer. */
  isPartial(): boolean;
}

/** A store and its name in metrics and the log. */
export interface ObservedStore {
  readonly name: string;
  readonly store: UserStore;
}

export interface StoreObservation {
  readonly log: Log;
  readonly clock: Clock;
  readonly observer: Pick<Observer, "storeAnswered" | "outdatedHashUsed">;
}

/** Maximum number of users remembered as logged. Beyond it, all are logged again. */
const MOST_LOGGED = 10_000;

/**
 * Queries the stores in order, and measures each. The first store that knows the name decides; so does a store that is unavailable. If no
 * store knows the name, a decoy hash is verified, so that the response time does not reveal unknown users. A name
 * always gets the same decoy, since the hashes of users may differ in cost.
 *
 * @param verifier verifies the decoy if the stores have no users.
 */
export function createCredentialCheck(
  stores: readonly ObservedStore[],
  verifier: PasswordVerifier,
  { log, clock, observer }: StoreObservation,
): CredentialCheck {
  const verifyDecoy = createDecoys(stores, verifier);
  const logged = new Map(stores.map(({ name }) => [name, new Set<string>()]));

  /** Logs once for each user. */
  function reportOutdated(store: string, user: string, reason: string): void {
    observer.outdatedHashUsed(store);
    const users = logged.get(store);
    if (users === undefined || users.has(user)) return;
    if (users.size >= MOST_LOGGED) users.clear();
    users.add(user);
    log.info("the password hash of a user should be replaced", { store, user, reason });
  }

  return {
    isPartial: () => stores.slice(1).some(({ store }) => store.failing?.() === true),
    async check(username, password, origin) {
      for (const { name, store } of stores) {
        const began = clock.monotonic();
        let result: StoreResult = "error";
        try {
          const verdict = await store.verify(username, password, origin);
          ({ result } = verdict);
          if (verdict.result === "found" && verdict.outdated !== undefined) {
            reportOutdated(name, verdict.user.name, verdict.outdated);
          }
          if (verdict.result !== "unknown") return verdict;
        } finally {
          observer.storeAnswered(name, result, (clock.monotonic() - began) / 1000);
        }
      }
      await verifyDecoy(username, password, origin);
      return { result: "wrong" };
    },
  };
}

/** Picks the decoy for an unknown name. A key that is new in each process makes the choice unpredictable. */
function createDecoys(stores: readonly ObservedStore[], verifier: PasswordVerifier) {
  const key = randomBytes(32);
  const withoutUsers = decoyHash();
  return async (username: string, password: string, origin: AttemptOrigin): Promise<void> => {
    const counts = stores.map(({ store }) => store.decoys.count());
    const total = counts.reduce((sum, count) => sum + count, 0);
    let index = createHmac("sha256", key).update(username).digest().readUIntBE(0, 6);
    index %= Math.max(1, total);
    for (const [place, { store }] of stores.entries()) {
      const count = counts[place] ?? 0;
      if (index < count) return void (await store.decoys.verify(index, password, origin));
      index -= count;
    }
    await verifyBounded(verifier, password, withoutUsers, origin);
  };
}

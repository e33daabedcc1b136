import { GateError } from "../core/request/errors.ts";
import type { LoginService, TokenIssuer, User } from "../core/login.ts";
import { type KeyedSemaphore, QueueFullError } from "../lib/async/keyed-semaphore.ts";
import type { AttemptOrigin, LoginThrottle, ThrottleLimit } from "./throttle/login-throttle.ts";
import { createHmac, randomBytes } from "node:crypto";
import { decoyHash } from "./hashing/new-hash.ts";
import type { PasswordVerifier } from "./hashing/hashing-pool.ts";
import { verifyBounded } from "./stores/hash-store.ts";
import type { UserStore, VerifyResult } from "./stores/user-store.ts";

export interface LoginServiceParts {
  readonly credentials: CredentialCheck;
  readonly throttle: LoginThrottle;
  readonly issuer: TokenIssuer;
  /** Where concurrent logins for the same name from the same client wait. */
  readonly turns: KeyedSemaphore;
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
  const { throttle, issuer, turns } = parts;
  return {
    async logIn(username, password, client) {
      const user = await turns
        .run(
          throttle.queueFor(username, client),
          () => throttle.remaining(username, client),
          () => checked(parts, username, password, client),
        )
        .catch(queueFull);
      return { token: await issuer.issue(user) };
    },
  };
}

async function checked(
  { credentials, throttle }: LoginServiceParts,
  username: string,
  password: string,
  client: string,
): Promise<User> {
  const attempt = throttle.begin(username, client);
  if ("limit" in attempt) {
    const { limit, retryAfter } = attempt;
    throw new GateError("login_throttled", { reason: REASONS[limit], retryAfter });
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
      throw new GateError("bad_credentials", { reason: "bad_credentials" });
    case "unavailable":
      attempt.abandoned();
      throw new GateError("users_unavailable", { reason: "users_unavailable", retryAfter: 5 });
  }
}

function queueFull(error: unknown): never {
  if (!(error instanceof QueueFullError)) throw error;
  throw new GateError("login_queue_full", { reason: "queue_full", retryAfter: 1 });
}

/** Reports whether a name and a password belong together. Rejects as `UserStore.verify` does. */
export interface CredentialCheck {
  check(
    username: string,
    password: string,
    origin: AttemptOrigin,
  ): Promise<Exclude<VerifyResult, { readonly result: "unknown" }>>;
}

/**
 * Queries the stores in order. The first store that knows the name decides; so does a store that is unavailable. If no
 * store knows the name, a decoy hash is verified, so that the response time does not reveal unknown users. A name
 * always gets the same decoy, since the hashes of users may differ in cost.
 *
 * @param verifier verifies the decoy if the stores have no users.
 */
export function createCredentialCheck(
  stores: readonly UserStore[],
  verifier: PasswordVerifier,
): CredentialCheck {
  const verifyDecoy = createDecoys(stores, verifier);
  return {
    async check(username, password, origin) {
      for (const store of stores) {
        const verdict = await store.verify(username, password, origin);
        if (verdict.result !== "unknown") return verdict;
      }
      await verifyDecoy(username, password, origin);
      return { result: "wrong" };
    },
  };
}

/** Picks the decoy for an unknown name. A key that is new in each process makes the choice unpredictable. */
function createDecoys(stores: readonly UserStore[], verifier: PasswordVerifier) {
  const key = randomBytes(32);
  const withoutUsers = decoyHash();
  return async (username: string, password: string, origin: AttemptOrigin): Promise<void> => {
    const counts = stores.map(({ decoys }) => decoys.count());
    const total = counts.reduce((sum, count) => sum + count, 0);
    let index = createHmac("sha256", key).update(username).digest().readUIntBE(0, 6);
    index %= Math.max(1, total);
    for (const [place, { decoys }] of stores.entries()) {
      const count = counts[place] ?? 0;
      if (index < count) return void (await decoys.verify(index, password, origin));
      index -= count;
    }
    await verifyBounded(verifier, password, withoutUsers, origin);
  };
}

import { argon2Sync, randomBytes } from "node:crypto";
import { ConfigError } from "../../src/core/config-problem.ts";
import { LARGEST_USERS_FILE } from "../../src/credentials/stores/user-store.ts";
import {
  type FileContent,
  readFailure,
  readRegularFileSync,
} from "../../src/lib/files/regular-file.ts";
import type {
  AttemptOrigin,
  FailureThrottle,
  LoginThrottleLimits,
  ThrottleRefusal,
} from "../../src/credentials/throttle/login-throttle.ts";

/** Returns limits for one name from one network, and hardly any for several. @param ban milliseconds. */
export function limitsOfPair(attempts: number, ban: number): LoginThrottleLimits {
  const within = 60_000;
  const many = { attempts: 100, within };
  return { attempts, within, ban, address: { ...many, ban: within }, account: many, global: many };
}

/** Returns an argon2id hash that takes well under a millisecond to verify. */
export function cheapHash(password: string): string {
  const salt = randomBytes(16);
  const cost = { memory: 64, passes: 1, parallelism: 1, tagLength: 32 };
  const hash = argon2Sync("argon2id", { message: password, nonce: salt, ...cost });
  return `$argon2id$v=19$m=64,t=1,p=1$${unpadded(salt)}$${unpadded(hash)}`;
}

/** Standard base64 without padding. */
export function unpadded(bytes: Buffer): string {
  return bytes.toString("base64").replace(/=+$/, "");
}

/** An origin that has never logged in. */
export const STRANGER: AttemptOrigin = { network: "192.0.2.1", known: false, failures: 0 };

/** Wraps a throttle so that attempts run one after the other. */
export function oneByOne(throttle: FailureThrottle) {
  return {
    queueFor: (username: string, client: string) => {
      const { key, group } = throttle.attemptsOf(username, client);
      return { key, group };
    },
    remaining: (username: string, client: string) =>
      throttle.attemptsOf(username, client).remaining(),
    begin: (username: string, client: string) => throttle.attemptsOf(username, client).begin(),
    change: (limits: LoginThrottleLimits) => throttle.change(limits),
    refusal(username: string, client: string): ThrottleRefusal | undefined {
      const begun = throttle.attemptsOf(username, client).begin();
      if ("limit" in begun) return begun;
      begun.abandoned();
      return undefined;
    },
    /** Makes a failing attempt, and reports whether the throttle allowed it. */
    failed(username: string, client: string): boolean {
      const begun = throttle.attemptsOf(username, client).begin();
      if ("limit" in begun) return false;
      begun.failed();
      return true;
    },
    succeeded(username: string, client: string): void {
      const begun = throttle.attemptsOf(username, client).begin();
      if (!("limit" in begun)) begun.succeeded();
    },
  };
}

/** Returns the current content of a file, as in a snapshot. */
export function contentOf(path: string): FileContent {
  try {
    return readRegularFileSync(path, LARGEST_USERS_FILE);
  } catch (error) {
    const message = `the users file cannot be read: ${readFailure(error)}`;
    throw new ConfigError([{ file: path, message }]);
  }
}

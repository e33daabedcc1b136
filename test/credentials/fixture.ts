import { argon2Sync, randomBytes } from "node:crypto";
import type { AttemptOrigin } from "../../src/core/credential-check.ts";
import type { LoginThrottle, ThrottleRefusal } from "../../src/core/login-throttle.ts";

/** An argon2id hash that is verified in well under a millisecond. */
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

/** Somebody who has never been here. */
export const STRANGER: AttemptOrigin = { network: "192.0.2.1", familiar: false, failures: 0 };

/** A throttle, asked by one attempt after the other: none begins before the last has ended. */
export function oneByOne<Throttle extends LoginThrottle>(throttle: Throttle) {
  return {
    ...throttle,
    refusal(username: string, client: string): ThrottleRefusal | undefined {
      const begun = throttle.begin(username, client);
      if ("limit" in begun) return begun;
      begun.abandoned();
      return undefined;
    },
    /** Whether the attempt was let through, and failed. */
    failed(username: string, client: string): boolean {
      const begun = throttle.begin(username, client);
      if ("limit" in begun) return false;
      begun.failed();
      return true;
    },
    succeeded(username: string, client: string): void {
      const begun = throttle.begin(username, client);
      if (!("limit" in begun)) begun.succeeded();
    },
  };
}

import { MAX_PASSWORD_BYTES } from "../hashing/new-hash.ts";
import type { PasswordVerifier } from "../hashing/hashing-pool.ts";
import type { AttemptOrigin } from "../throttle/login-throttle.ts";
import type { UserStore, VerifyResult } from "./user-store.ts";

/** One user of a store of password hashes. */
export interface UserRecord {
  readonly name: string;
  /** A string that `readPasswordHash` accepts. */
  readonly password: string;
  /** Why the hash should be replaced; undefined if it is strong enough. */
  readonly outdated: string | undefined;
  readonly groups: readonly string[];
  readonly disabled: boolean;
}

type Found = UserRecord | undefined | Extract<VerifyResult, { readonly result: "unavailable" }>;

/** Where the hashes come from. */
export interface HashSource {
  /** Returns undefined for an unknown name. Rejects as `UserStore.verify` does. */
  find(username: string, origin: AttemptOrigin): Found | Promise<Found>;
  /** The hashes of users. They determine the cost of a login with an unknown name. */
  passwords(): readonly string[];
}

/** How often a password is verified if its hash changes each time meanwhile. */
const MOST_ROUNDS = 3;

/**
 * A store of password hashes. A known name costs exactly one verification, whatever the result, unless its hash changes
 * meanwhile.
 */
export function hashStore(source: HashSource, verifier: PasswordVerifier): UserStore {
  return {
    async verify(username, password, origin) {
      let record = await source.find(username, origin);
      for (let round = 0; round < MOST_ROUNDS; round += 1) {
        if (record === undefined) return { result: "unknown" };
        if ("result" in record) return record;
        const verified = record.password;
        const matches = await verifyBounded(verifier, password, verified, origin);
        if (!matches || record.disabled) return { result: "wrong" };
        // A hash takes up to seconds, with the wait for a thread. What counts is the user as of now.
        record = await source.find(username, origin);
        if (record === undefined || "result" in record || record.password !== verified) continue;
        if (record.disabled) return { result: "wrong" };
        const { name, groups, outdated } = record;
        return { result: "found", user: { name, groups }, ...(outdated && { outdated }) };
      }
      return { result: "unavailable" };
    },
    decoys: {
      count: () => source.passwords().length,
      async verify(index, password, origin) {
        const hash = source.passwords()[index];
        if (hash !== undefined) await verifyBounded(verifier, password, hash, origin);
      },
    },
  };
}

/** Verifies exactly one hash, whatever the length of the password. A password that is too long is always wrong. */
export async function verifyBounded(
  verifier: PasswordVerifier,
  password: string,
  hash: string,
  origin: AttemptOrigin,
): Promise<boolean> {
  const tooLong = Buffer.byteLength(password) > MAX_PASSWORD_BYTES;
  const matches = await verifier.verify(tooLong ? "" : password, hash, origin);
  return matches && !tooLong;
}

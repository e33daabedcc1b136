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

/** A store of password hashes. A known name costs exactly one verification, whatever the result. */
export function hashStore(source: HashSource, verifier: PasswordVerifier): UserStore {
  return {
    async verify(username, password, origin) {
      const record = await source.find(username, origin);
      if (record === undefined) return { result: "unknown" };
      if ("result" in record) return record;
      const { name, groups, disabled, outdated } = record;
      const matches = await verifyBounded(verifier, password, record.password, origin);
      if (!matches || disabled) return { result: "wrong" };
      return { result: "found", user: { name, groups }, ...(outdated && { outdated }) };
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

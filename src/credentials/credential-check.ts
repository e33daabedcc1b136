import { createHmac, randomBytes } from "node:crypto";
import type { CredentialCheck } from "../core/credential-check.ts";
import type { UserRecord, UserStore } from "../core/user-store.ts";
import { MAX_PASSWORD_BYTES, decoyHash } from "./hash-password.ts";
import type { PasswordVerifier } from "./password-verifier.ts";

/**
 * Checks names and passwords against stores, asked in order; the first that knows a name decides. Every check verifies
 * exactly one hash, so that time does not tell unknown and disabled users from a wrong password: an unknown name is
 * given the hash of somebody, always the same for that name, since users' hashes may differ in cost.
 */
export function createCredentialCheck(
  stores: readonly UserStore[],
  verifier: PasswordVerifier,
): CredentialCheck {
  const decoys = createDecoys(stores);
  return {
    async check(username, password, origin) {
      const record = findRecord(stores, username);
      const tooLong = Buffer.byteLength(password) > MAX_PASSWORD_BYTES;
      const matches = await verifier.verify(
        tooLong ? "" : password,
        record?.password ?? decoys(username),
        origin,
      );
      if (record === undefined || record.disabled || tooLong || !matches) return undefined;
      return { name: record.name, groups: record.groups };
    },
  };
}

function findRecord(stores: readonly UserStore[], username: string): UserRecord | undefined {
  for (const store of stores) {
    const record = store.find(username);
    if (record !== undefined) return record;
  }
  return undefined;
}

/** Picks a hash for a name that nobody has; a key of this run alone makes the choice unforeseeable. */
function createDecoys(stores: readonly UserStore[]): (username: string) => string {
  const key = randomBytes(32);
  const withoutUsers = decoyHash();
  return (username) => {
    const lists = stores.map((store) => store.passwords());
    const total = lists.reduce((sum, list) => sum + list.length, 0);
    if (total === 0) return withoutUsers;
    let index = createHmac("sha256", key).update(username).digest().readUIntBE(0, 6) % total;
    for (const list of lists) {
      const picked = list[index];
      if (picked !== undefined) return picked;
      index -= list.length;
    }
    return withoutUsers;
  };
}

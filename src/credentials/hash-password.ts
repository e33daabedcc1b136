import { argon2Sync, randomBytes } from "node:crypto";
import { toUnpaddedBase64 } from "./phc-string.ts";

/** Longer passwords are never right; UTF-8 bytes. */
export const MAX_PASSWORD_BYTES = 1024;

/** OWASP Password Storage Cheat Sheet: argon2id with 19 MiB, two passes, one lane. */
const COST = { memory: 19_456, passes: 2, parallelism: 1 };
const SALT_BYTES = 16;
const HASH_BYTES = 32;

/**
 * Makes the PHC argon2id string of a password, with a new salt. Takes some 50 ms on the calling thread.
 *
 * @throws RangeError for an empty password and for one over 1024 bytes, which no login would accept.
 */
export function hashPassword(password: string): string {
  if (password === "") throw new RangeError("the password is empty");
  if (Buffer.byteLength(password) > MAX_PASSWORD_BYTES) {
    throw new RangeError(`the password is longer than ${MAX_PASSWORD_BYTES} bytes`);
  }
  const salt = randomBytes(SALT_BYTES);
  return phcString(
    salt,
    argon2Sync("argon2id", { message: password, nonce: salt, tagLength: HASH_BYTES, ...COST }),
  );
}

/** A string of the same form and cost that was made from no password. */
export function decoyHash(): string {
  return phcString(randomBytes(SALT_BYTES), randomBytes(HASH_BYTES));
}

function phcString(salt: Buffer, hash: Buffer): string {
  const { memory, passes, parallelism } = COST;
  const [salt64, hash64] = [toUnpaddedBase64(salt), toUnpaddedBase64(hash)];
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${salt64}$${hash64}`;
}

import { argon2Sync, randomBytes } from "node:crypto";
import { toUnpaddedBase64 } from "./password-hash.ts";

/** Maximum length of a password, in bytes of UTF-8. Longer ones are always wrong. */
export const MAX_PASSWORD_BYTES = 1024;

/** OWASP Password Storage Cheat Sheet: argon2id with 19 MiB, two passes, one lane. */
const COST = { memory: 19_456, passes: 2, parallelism: 1 };
const SALT_BYTES = 16;
const HASH_BYTES = 32;

/**
 * Hashes a password with a new salt and returns the argon2id PHC string. Takes about 50 ms on the calling thread.
 *
 * @throws RangeError for an empty password and for one over 1024 bytes, which no login accepts.
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

/** Returns a string of the same format and cost that matches no password. */
export function decoyHash(): string {
  return phcString(randomBytes(SALT_BYTES), randomBytes(HASH_BYTES));
}

function phcString(salt: Buffer, hash: Buffer): string {
  const { memory, passes, parallelism } = COST;
  const [salt64, hash64] = [toUnpaddedBase64(salt), toUnpaddedBase64(hash)];
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${salt64}$${hash64}`;
}

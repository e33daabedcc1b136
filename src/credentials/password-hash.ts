import { argon2id } from "./argon2id.ts";
import { bcrypt } from "./bcrypt.ts";
import type { HashKind, HashRefusal, PasswordHash } from "./hash-kind.ts";
import { refusalOf } from "./refused-hashes.ts";
import { scrypt } from "./scrypt.ts";

const KINDS = { argon2id, bcrypt, scrypt } satisfies Record<string, HashKind>;

/** The longest string within every kind's limits is an argon2id hash of some 320 characters. */
const MAX_LENGTH = 512;

/**
 * Reads a password hash: argon2id or scrypt in PHC form, or bcrypt. Everything else is refused with a reason, as is a
 * hash whose parameters would cost more memory or time than a login may.
 */
export function readPasswordHash(text: string): PasswordHash | HashRefusal {
  if (text.length > MAX_LENGTH) return { refused: "this is too long for a password hash" };
  const kind = Object.values(KINDS).find((candidate) => candidate.claims(text));
  return kind?.read(text) ?? { refused: refusalOf(text) };
}

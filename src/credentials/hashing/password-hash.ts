import { argon2id } from "./argon2id.ts";
import { bcrypt } from "./bcrypt.ts";
import type { HashKind, HashRefusal, PasswordHash } from "./hash-kind.ts";
import { refusalOf } from "./refused-hashes.ts";
import { scrypt } from "./scrypt.ts";

const KINDS = { argon2id, bcrypt, scrypt } satisfies Record<string, HashKind>;

/** The longest string within the limits of every kind is an argon2id hash of about 320 characters. */
const MAX_LENGTH = 512;

/**
 * Parses a password hash: argon2id or scrypt in PHC format, or bcrypt. Refuses everything else with a reason, including
 * hashes whose parameters cost more memory or time than a login may take.
 *
 * @param weak whether to accept hashes that are too weak for a users file.
 */
export function readPasswordHash(text: string, { weak = false } = {}): PasswordHash | HashRefusal {
  if (text.length > MAX_LENGTH) return { refused: "this is too long for a password hash" };
  const kind = Object.values(KINDS).find((candidate) => candidate.claims(text));
  const read = kind?.read(text) ?? { refused: refusalOf(text) };
  return "refused" in read || weak || read.weak === undefined ? read : { refused: read.weak };
}

/** Returns why a hash in use should be replaced, without quoting it; undefined if it is strong enough. */
export function outdatedHash(text: string): string | undefined {
  const read = readPasswordHash(text, { weak: true });
  return "refused" in read ? undefined : read.outdated;
}

import { argon2id } from "./argon2id.ts";
import { bcrypt } from "./bcrypt.ts";
import type { HashKind, HashRefusal, PasswordHash } from "./hash-kind.ts";
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

/** Hashes that are recognised only to explain why they are refused. The first matching row wins. */
const REFUSED: readonly (readonly [form: RegExp, reason: string])[] = [
  [/^\$(?:1|apr1|md5)\$|^\{S?MD5\}|^[0-9a-f]{32}$/i, "MD5 is not a safe password hash"],
  [/^\$sha1\$|^\{S?SHA\}|^\*?[0-9a-f]{40}$/i, "SHA-1 is not a safe password hash"],
  [/^\$[56]\$|^\{CRYPT\}/i, "sha-crypt is not supported"],
  [/^(?:[0-9a-f]{64}|[0-9a-f]{128})$|^\{S?SHA\d+\}/i, "a plain SHA-2 is not a safe password hash"],
  [/^\$argon2[id]\$/, "only the argon2id variant of argon2 is supported"],
  [/^\$2x?\$/, "this old version of bcrypt has a bug and is not supported"],
  [/^\$7\$/, "scrypt is supported only in PHC format: $scrypt$ln=…,r=…,p=…$salt$hash"],
  [/^\$[A-Za-z0-9-]+\$/, "this kind of hash is not supported"],
];

const ADVICE = "make one with `sallyport hash-password`";

/**
 * Explains why a text that is no supported hash is refused. The result is a fixed text, since the argument may be a
 * plain-text password.
 */
function refusalOf(text: string): string {
  const row = REFUSED.find(([form]) => form.test(text));
  const reason =
    row?.[1] ?? "a password in plain text, or a hash of an unknown kind, is not accepted";
  return `${reason}; ${ADVICE}`;
}

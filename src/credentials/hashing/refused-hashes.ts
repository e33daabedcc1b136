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
export function refusalOf(text: string): string {
  const row = REFUSED.find(([form]) => form.test(text));
  const reason =
    row?.[1] ?? "a password in plain text, or a hash of an unknown kind, is not accepted";
  return `${reason}; ${ADVICE}`;
}

import { expect, test } from "vitest";
import { hashPassword } from "../../src/credentials/hashing/new-hash.ts";
import { readPasswordHash } from "../../src/credentials/hashing/password-hash.ts";

test("a new hash is argon2id with OWASP's parameters and matches only its password", () => {
  const hash = hashPassword("correct horse");
  expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
  const read = readPasswordHash(hash);
  if ("refused" in read) throw new Error(read.refused);
  expect(read.matches("correct horse")).toBe(true);
  expect(read.matches("correct horsE")).toBe(false);
});

test("each hash has its own salt", () => {
  expect(hashPassword("same")).not.toBe(hashPassword("same"));
});

test("a password that no login would accept is not hashed", () => {
  expect(() => hashPassword("")).toThrow(RangeError);
  expect(() => hashPassword("é".repeat(513))).toThrow(RangeError);
  expect(hashPassword("é".repeat(512))).toMatch(/^\$argon2id\$/);
});

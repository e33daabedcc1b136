import { scryptSync } from "node:crypto";
import { describe, expect, test } from "vitest";
import { readPasswordHash } from "../../src/credentials/hashing/password-hash.ts";
import { unpadded } from "./fixture.ts";

function matches(password: string, hash: string): boolean {
  const read = readPasswordHash(hash);
  if ("refused" in read) throw new Error(read.refused);
  return read.matches(password);
}

function refused(hash: string): boolean {
  return "refused" in readPasswordHash(hash);
}

const SALT = unpadded(Buffer.alloc(16, 1));
const HASH = unpadded(Buffer.alloc(32, 2));

describe("published hashes are verified", () => {
  test.each([
    // The reference implementation's test.c, version 0x13.
    [
      "password",
      "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
    ],
    [
      "password",
      "$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc",
    ],
    [
      "password",
      "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
    ],
    // jBCrypt's tests.
    ["", "$2a$08$HqWuK6/Ng6sg9gQzbLrgb.Tl.ZHfXLhvt/SgVyWhQqgqcZ7ZuUtye"],
    ["a", "$2a$08$cfcvVd2aQ8CMvoMpP2EBfeodLEkkFJ9umNEfPD18.hUF62qqlC/V."],
    ["abc", "$2b$08$Ro0CUfOqk6cXEKf3dyaM7OhSCvnwM9s4wIX9JeLapehKK5YdLxKcm"],
    // The example password of Laravel's factories.
    ["password", "$2y$10$92IXUNpkjO0rOQ5byMi.Ye4oKoEa3Ro9llC/.og/at2.uheWG/igi"],
    // passlib's documentation.
    [
      "password",
      "$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E",
    ],
  ])("%j %s", (password, hash) => {
    expect(matches(password, hash)).toBe(true);
    expect(matches(`${password} `, hash)).toBe(false);
  });
});

test("a password over bcrypt's 72 bytes does not match, though bcrypt itself would ignore the end", () => {
  const hash = "$2b$08$Ro0CUfOqk6cXEKf3dyaM7OtjIlcAoMJZnB0IGsJdGViNNVMzEBmN6";
  expect(matches("a".repeat(72), hash)).toBe(true);
  expect(matches("a".repeat(73), hash)).toBe(false);
});

test("no password with a NUL matches, though bcrypt and the HMAC of scrypt take NULs at the end for nothing", () => {
  const ofNothing = [
    "$2a$08$HqWuK6/Ng6sg9gQzbLrgb.Tl.ZHfXLhvt/SgVyWhQqgqcZ7ZuUtye",
    `$scrypt$ln=4,r=8,p=1$${SALT}$${unpadded(scryptSync("", Buffer.alloc(16, 1), 32, { N: 16, r: 8, p: 1 }))}`,
  ];
  for (const hash of ofNothing) {
    expect(matches("", hash)).toBe(true);
    expect(matches("\0", hash)).toBe(false);
    expect(matches("\0\0", hash)).toBe(false);
  }
  const ofA = "$2a$08$cfcvVd2aQ8CMvoMpP2EBfeodLEkkFJ9umNEfPD18.hUF62qqlC/V.";
  expect(matches("a\0a", ofA)).toBe(false);
});

describe("unsafe hashes are refused", () => {
  test.each([
    ["plain text", "hunter2"],
    ["nothing", ""],
    ["MD5", "5f4dcc3b5aa765d61d8327deb882cf99"],
    ["MD5 crypt", "$1$O3JMY.Tw$AdLnLjQ/5jXF9.MTp3gHv/"],
    ["Apache MD5", "$apr1$r31.....$HqJZimcKQFAMYayBlzkrA/"],
    ["LDAP MD5", "{MD5}X03MO1qnZdYdgyfeuILPmQ=="],
    ["SHA-1", "5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8"],
    ["LDAP SHA-1", "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="],
    ["LDAP salted SHA-1", "{SSHA}W6ph5Mm5Pz8GgiULbPgzG37mj9hzYWx0"],
    ["MySQL", "*2470C0C06DEE42FD1618BBB99005ADCA2EC9D1E1"],
    ["SHA-256", "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"],
    ["SHA-256 crypt", "$5$MnfsQ4iN$ZMTppKN16y/tIsUYs/obHlhdP.Os80yXhTurpBMUbA5"],
    ["SHA-512 crypt", `$6$saltstring$${"a".repeat(86)}`],
    ["yescrypt", "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$tnSYvahCwPBHKZUspmcxMfb0.WiB9W.zEaKlOBL35rC"],
    [
      "PBKDF2",
      "$pbkdf2-sha256$29000$N2YMIWQsBWBMae09x1jrPQ$1t8iyB2A.WF/Z5JZv.lfCIhXXN33N23OSgQYThBYRfk",
    ],
    ["argon2i", `$argon2i$v=19$m=256,t=2,p=1$${SALT}$${HASH}`],
    ["argon2d", `$argon2d$v=19$m=256,t=2,p=1$${SALT}$${HASH}`],
    ["bcrypt 2x", "$2x$08$HqWuK6/Ng6sg9gQzbLrgb.Tl.ZHfXLhvt/SgVyWhQqgqcZ7ZuUtye"],
    ["something endless", `$argon2id$${"a".repeat(100_000)}`],
  ])("%s", (_what, text) => {
    const read = readPasswordHash(text);
    if (!("refused" in read)) throw new Error("accepted");
    if (text !== "") expect(read.refused).not.toContain(text);
  });

  test("the reason names MD5 and SHA-1", () => {
    expect(readPasswordHash("$1$a$b")).toMatchObject({ refused: /MD5/ });
    expect(readPasswordHash("{SHA}abc=")).toMatchObject({ refused: /SHA-1/ });
  });
});

describe("parameters are bounded", () => {
  const argon2id = (parameters: string, salt = SALT, hash = HASH): string =>
    `$argon2id$v=19$${parameters}$${salt}$${hash}`;
  const scrypt = (parameters: string, salt = SALT, hash = HASH): string =>
    `$scrypt$${parameters}$${salt}$${hash}`;
  const bcrypt = (cost: string): string => `$2b$${cost}$${"a".repeat(53)}`;

  test.each([
    argon2id("m=1048576,t=4,p=1"),
    argon2id("m=8,t=32,p=1"),
    argon2id("m=128,t=1,p=16"),
    scrypt("ln=20,r=8,p=1"),
    scrypt("ln=1,r=1,p=16"),
    bcrypt("08"),
    bcrypt("16"),
  ])("accepted: %s", (hash) => expect(refused(hash)).toBe(false));

  test.each([
    argon2id("m=1048577,t=1,p=1"),
    argon2id("m=1048576,t=5,p=1"),
    argon2id("m=4294967295,t=1,p=1"),
    argon2id("m=7,t=1,p=1"),
    argon2id("m=127,t=1,p=16"),
    argon2id("m=256,t=0,p=1"),
    argon2id("m=8,t=33,p=1"),
    argon2id("m=256,t=1,p=0"),
    argon2id("m=256,t=1,p=17"),
    argon2id("m=256,t=2,p=1", unpadded(Buffer.alloc(7))),
    argon2id("m=256,t=2,p=1", unpadded(Buffer.alloc(65))),
    argon2id("m=256,t=2,p=1", SALT, unpadded(Buffer.alloc(15))),
    argon2id("m=256,t=2,p=1", SALT, unpadded(Buffer.alloc(129))),
    scrypt("ln=21,r=1,p=1"),
    scrypt("ln=20,r=9,p=1"),
    scrypt("ln=20,r=8,p=5"),
    scrypt("ln=16,r=1,p=1"),
    scrypt("ln=0,r=8,p=1"),
    scrypt("ln=10,r=0,p=1"),
    scrypt("ln=10,r=8,p=17"),
    scrypt("ln=10,r=8,p=1", unpadded(Buffer.alloc(7))),
    scrypt("ln=10,r=8,p=1", SALT, unpadded(Buffer.alloc(15))),
    bcrypt("07"),
    bcrypt("17"),
    bcrypt("99"),
  ])("refused: %s", (hash) => expect(refused(hash)).toBe(true));
});

describe("the form is exact", () => {
  test.each([
    `$argon2id$m=256,t=2,p=1$${SALT}$${HASH}`,
    `$argon2id$v=16$m=256,t=2,p=1$${SALT}$${HASH}`,
    `$argon2id$v=19$t=2,m=256,p=1$${SALT}$${HASH}`,
    `$argon2id$v=19$m=256,t=2,p=1,data=AAAA$${SALT}$${HASH}`,
    `$argon2id$v=19$m=0256,t=2,p=1$${SALT}$${HASH}`,
    `$argon2id$v=19$m=2e2,t=2,p=1$${SALT}$${HASH}`,
    `$argon2id$v=19$m=256,t=2,p=1$${SALT}==$${HASH}`,
    `$argon2id$v=19$m=256,t=2,p=1$${SALT.slice(0, -1)}B$${HASH}`,
    `$argon2id$v=19$m=256,t=2,p=1$${SALT}$${HASH}$`,
    `$argon2id$v=19$m=256,t=2,p=1$${SALT}`,
    `$scrypt$v=1$ln=10,r=8,p=1$${SALT}$${HASH}`,
    `$scrypt$n=1024,r=8,p=1$${SALT}$${HASH}`,
    `$2b$8$${"a".repeat(54)}`,
    `$2b$08$${"a".repeat(52)}`,
    `$2b$08$${"a".repeat(53)}\n`,
  ])("refused: %j", (hash) => expect(refused(hash)).toBe(true));
});

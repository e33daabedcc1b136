import { argon2Sync, scryptSync, timingSafeEqual } from "node:crypto";
import { hashSync, truncates } from "bcryptjs";

/** The parts of `$<id>[$v=<version>]$<name>=<number>,…$<salt>$<hash>`. */
interface PhcParts {
  /** Undefined if the string names no version. */
  readonly version: number | undefined;
  readonly parameters: readonly number[];
  readonly salt: Buffer;
  readonly hash: Buffer;
}

const NUMBER = /^(?:0|[1-9][0-9]{0,9})$/;
const BASE64 = /^[A-Za-z0-9+/]+$/;

/**
 * Parses a PHC string (https://github.com/P-H-C/phc-string-format). The parameters must be exactly the named ones, in
 * that order, as plain decimal numbers. Salt and hash must be standard base64 without padding.
 *
 * @returns undefined if the text has another format.
 */
function parsePhcString(
  text: string,
  id: string,
  parameterNames: readonly string[],
): PhcParts | undefined {
  const [before, name, ...rest] = text.split("$");
  if (before !== "" || name !== id) return undefined;
  const version = rest[0]?.startsWith("v=") ? decimal(rest.shift()?.slice(2)) : undefined;
  if (rest.length !== 3 || Number.isNaN(version)) return undefined;

  const parameters = namedNumbers(rest[0] ?? "", parameterNames);
  const salt = unpaddedBase64(rest[1] ?? "");
  const hash = unpaddedBase64(rest[2] ?? "");
  if (parameters === undefined || salt === undefined || hash === undefined) return undefined;
  return { version, parameters, salt, hash };
}

/** Encodes bytes as standard base64 without padding, as the PHC format requires. */
export function toUnpaddedBase64(bytes: Buffer): string {
  return bytes.toString("base64").replaceAll("=", "");
}

function namedNumbers(text: string, names: readonly string[]): number[] | undefined {
  const pairs = text.split(",");
  if (pairs.length !== names.length) return undefined;
  const values = names.map((name, index) => {
    const pair = pairs[index] ?? "";
    return pair.startsWith(`${name}=`) ? decimal(pair.slice(name.length + 1)) : Number.NaN;
  });
  return values.some(Number.isNaN) ? undefined : values;
}

function decimal(text: string | undefined): number {
  return text !== undefined && NUMBER.test(text) ? Number(text) : Number.NaN;
}

/** Accepts only the canonical encoding: no stray bits in the last character. */
function unpaddedBase64(text: string): Buffer | undefined {
  if (!BASE64.test(text)) return undefined;
  const bytes = Buffer.from(text, "base64");
  return toUnpaddedBase64(bytes) === text ? bytes : undefined;
}

type Rule = readonly [holds: boolean, refusal: string];

/** Returns the refusal of the first rule that does not hold. */
function refusalIn(rules: readonly Rule[]): HashRefusal | undefined {
  const broken = rules.find(([holds]) => !holds);
  return broken && { refused: broken[1] };
}

/** Whether salt and hash are neither too short to be safe nor longer than any tool makes them. */
const isSaltSize = ({ length }: Buffer): boolean => length >= 8 && length <= 64;
const isHashSize = ({ length }: Buffer): boolean => length >= 16 && length <= 128;

const VERSION = 19;
const MAX_MEMORY_KIB = 1024 * 1024;
const MAX_PASSES = 32;
const MAX_LANES = 16;
/**
 * The OWASP Password Storage Cheat Sheet recommends the settings from m=46 MiB,t=1 to m=7 MiB,t=5 as equivalent. The
 * last of them has the lowest memory × passes.
 */
const CURRENT_WORK_KIB = 7_168 * 5;
const CURRENT_MEMORY_KIB = 7_168;
/** Bounds memory × passes, and so the time on one thread: 4 GiB took 4 s; 19 MiB × 2 took 47 ms. */
const MAX_WORK_KIB = 4 * 1024 * 1024;

/** An unquoted hash inside `{ }` as YAML reads it: the first comma ends it. */
const CUT = /^\$argon2id\$v=\d+\$m=\d+$/;

/** argon2id (RFC 9106) in the PHC format `$argon2id$v=19$m=<KiB>,t=<passes>,p=<lanes>$<salt>$<hash>`. */
const argon2id: HashKind = {
  claims: (text) => text.startsWith("$argon2id$"),

  read(text) {
    const parts = parsePhcString(text, "argon2id", ["m", "t", "p"]);
    if (CUT.test(text))
      return { refused: "argon2id: a comma ended the hash: put the hash in quotes" };
    if (parts === undefined) {
      return { refused: "argon2id: the form is $argon2id$v=19$m=…,t=…,p=…$salt$hash" };
    }
    const { version, salt, hash } = parts;
    const [memory = 0, passes = 0, parallelism = 0] = parts.parameters;
    const refused = refusalIn([
      [version === VERSION, "argon2id: only version 19 (v=19) is supported"],
      [passes >= 1 && passes <= MAX_PASSES, "argon2id: t must be 1 to 32"],
      [parallelism >= 1 && parallelism <= MAX_LANES, "argon2id: p must be 1 to 16"],
      [
        memory >= 8 * parallelism && memory <= MAX_MEMORY_KIB,
        "argon2id: m must be 8 × p to 1048576 (KiB)",
      ],
      [memory * passes <= MAX_WORK_KIB, "argon2id: m × t must be at most 4194304 (KiB)"],
      [isSaltSize(salt), "argon2id: the salt must have 8 to 64 bytes"],
      [isHashSize(hash), "argon2id: the hash must have 16 to 128 bytes"],
    ]);
    if (refused !== undefined) return refused;

    const cost = { memory, passes, parallelism, tagLength: hash.length };
    const outdated = memory < CURRENT_MEMORY_KIB || memory * passes < CURRENT_WORK_KIB;
    return {
      ...(outdated && { outdated: `argon2id with m=${memory},t=${passes}` }),
      matches: (password) =>
        timingSafeEqual(argon2Sync("argon2id", { message: password, nonce: salt, ...cost }), hash),
    };
  },
};

const FORM = /^\$2[aby]\$([0-9]{2})\$[./A-Za-z0-9]{53}$/;
const SALT_LENGTH = 29;
/**
 * The lowest cost that a users file may contain: a quarter of the work that OWASP recommends. Other stores accept lower
 * costs.
 */
const STRONG_COST = 8;
/** The lowest cost in the OWASP Password Storage Cheat Sheet. */
const CURRENT_COST = 10;
/** The lowest cost that bcrypt defines. */
const MIN_COST = 4;
/** 2^16 rounds occupy a thread for about 5 s: bcryptjs took 0.32 s for 2^12. */
const MAX_COST = 16;
const COST = "bcrypt: the cost must be 8 to 16";

/**
 * bcrypt with the prefixes `$2a$`, `$2b$` and `$2y$`, which are equivalent here. bcrypt reads 72 bytes of a password
 * and ignores the rest. A longer password never matches, since bcrypt would accept it with any other ending; nor does one with
 * a NUL, which bcrypt puts between repetitions of a password: `a\0a` would be `a`, and `\0` the empty password.
 */
const bcrypt: HashKind = {
  claims: (text) => /^\$2[aby]\$/.test(text),

  read(text) {
    const cost = Number(FORM.exec(text)?.[1]);
    if (Number.isNaN(cost)) return { refused: "bcrypt: the form is $2b$cost$ and 53 characters" };
    if (cost < MIN_COST || cost > MAX_COST) return { refused: COST };

    const salt = text.slice(0, SALT_LENGTH);
    const expected = Buffer.from(text.slice(SALT_LENGTH), "latin1");
    return {
      ...(cost < STRONG_COST && { weak: COST }),
      ...(cost < CURRENT_COST && { outdated: `bcrypt of cost ${cost}, less than ${CURRENT_COST}` }),
      matches(password) {
        // Compares the hash without the salt: bcryptjs rewrites the two unused bits at the end of a salt.
        const hash = Buffer.from(hashSync(password, salt).slice(SALT_LENGTH), "latin1");
        return timingSafeEqual(hash, expected) && !truncates(password) && !password.includes("\0");
      },
    };
  },
};

const MAX_BYTES = 1024 ** 3;
/** Bounds memory × p, and so the time on one thread: 64 MiB took 0.2 s. */
const MAX_WORK_BYTES = 4 * 1024 ** 3;

/**
 * The OWASP Password Storage Cheat Sheet recommends the settings from ln=17,r=8,p=1 to ln=13,r=8,p=10 as equivalent.
 * The last of them has the lowest N × r × p.
 */
const CURRENT_WORK = 2 ** 13 * 8 * 10;
const CURRENT_LOG2N = 13;

/**
 * scrypt (RFC 7914) in the PHC format `$scrypt$ln=<log2 N>,r=<block>,p=<lanes>$<salt>$<hash>`, as passlib writes it. A password
 * with a NUL never matches: HMAC pads its key with NULs, so that `\0` would be the empty password.
 */
const scrypt: HashKind = {
  claims: (text) => text.startsWith("$scrypt$"),

  read(text) {
    const parts = parsePhcString(text, "scrypt", ["ln", "r", "p"]);
    if (parts === undefined || parts.version !== undefined) {
      return { refused: "scrypt: the form is $scrypt$ln=…,r=…,p=…$salt$hash" };
    }
    const { salt, hash } = parts;
    const [log2N = 0, r = 0, p = 0] = parts.parameters;
    const N = 2 ** log2N;
    const refused = refusalIn([
      [log2N >= 1 && log2N <= 20, "scrypt: ln must be 1 to 20"],
      [r >= 1 && r <= 64, "scrypt: r must be 1 to 64"],
      [p >= 1 && p <= 16, "scrypt: p must be 1 to 16"],
      // RFC 7914 §2: N is less than 2^(128 * r / 8).
      [log2N < 16 * r, "scrypt: ln must be less than 16 × r"],
      [128 * N * r <= MAX_BYTES, "scrypt: ln and r ask for more than 1 GiB"],
      [128 * N * r * p <= MAX_WORK_BYTES, "scrypt: ln, r and p ask for more than 4 GiB of work"],
      [isSaltSize(salt), "scrypt: the salt must have 8 to 64 bytes"],
      [isHashSize(hash), "scrypt: the hash must have 16 to 128 bytes"],
    ]);
    if (refused !== undefined) return refused;

    // OpenSSL counts this memory against the limit: N + 2 blocks of working memory, and p blocks of its own.
    const maxmem = 128 * r * (N + p + 2);
    const outdated = log2N < CURRENT_LOG2N || N * r * p < CURRENT_WORK;
    return {
      ...(outdated && { outdated: `scrypt with ln=${log2N},r=${r},p=${p}` }),
      matches: (password) =>
        timingSafeEqual(scryptSync(password, salt, hash.length, { N, r, p, maxmem }), hash) &&
        !password.includes("\0"),
    };
  },
};

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

/** A password hash that was parsed and accepted. */
interface PasswordHash {
  /** Why this hash is too weak for a users file; undefined if it is strong enough. */
  readonly weak?: string;
  /** How the hash falls short of the OWASP Password Storage Cheat Sheet, without quoting it; undefined if it does not. */
  readonly outdated?: string;
  /** Computes for tens to hundreds of milliseconds on the calling thread. */
  matches(password: string): boolean;
}

/** Why a hash is refused: a fixed text that quotes nothing from the hash. */
interface HashRefusal {
  readonly refused: string;
}

/** A password hashing scheme. Its limits keep a single hash from exhausting the machine. */
interface HashKind {
  /** Reports whether the text claims to be of this kind. */
  claims(text: string): boolean;
  /** Parses and checks the whole text without expensive computation. */
  read(text: string): PasswordHash | HashRefusal;
}

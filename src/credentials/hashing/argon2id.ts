import { argon2Sync, timingSafeEqual } from "node:crypto";
import type { HashKind } from "./hash-kind.ts";
import { parsePhcString } from "./phc-string.ts";

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
export const argon2id: HashKind = {
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
    if (version !== VERSION) return { refused: "argon2id: only version 19 (v=19) is supported" };
    if (passes < 1 || passes > MAX_PASSES) return { refused: "argon2id: t must be 1 to 32" };
    if (parallelism < 1 || parallelism > MAX_LANES)
      return { refused: "argon2id: p must be 1 to 16" };
    if (memory < 8 * parallelism || memory > MAX_MEMORY_KIB) {
      return { refused: "argon2id: m must be 8 × p to 1048576 (KiB)" };
    }
    if (memory * passes > MAX_WORK_KIB) {
      return { refused: "argon2id: m × t must be at most 4194304 (KiB)" };
    }
    if (salt.length < 8 || salt.length > 64) {
      return { refused: "argon2id: the salt must have 8 to 64 bytes" };
    }
    if (hash.length < 16 || hash.length > 128) {
      return { refused: "argon2id: the hash must have 16 to 128 bytes" };
    }

    const cost = { memory, passes, parallelism, tagLength: hash.length };
    const outdated = memory < CURRENT_MEMORY_KIB || memory * passes < CURRENT_WORK_KIB;
    return {
      ...(outdated && { outdated: `argon2id with m=${memory},t=${passes}` }),
      matches: (password) =>
        timingSafeEqual(argon2Sync("argon2id", { message: password, nonce: salt, ...cost }), hash),
    };
  },
};

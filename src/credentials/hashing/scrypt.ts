import { scryptSync, timingSafeEqual } from "node:crypto";
import type { HashKind } from "./hash-kind.ts";
import { parsePhcString } from "./phc-string.ts";

const MAX_BYTES = 1024 ** 3;
/** Bounds memory × p, and so the time on one thread: 64 MiB took 0.2 s. */
const MAX_WORK_BYTES = 4 * 1024 ** 3;

/**
 * The OWASP Password Storage Cheat Sheet recommends the settings from ln=17,r=8,p=1 to ln=13,r=8,p=10 as equivalent.
 * The last of them has the lowest N × r × p.
 */
const CURRENT_WORK = 2 ** 13 * 8 * 10;
const CURRENT_LOG2N = 13;

/** scrypt (RFC 7914) in the PHC format `$scrypt$ln=<log2 N>,r=<block>,p=<lanes>$<salt>$<hash>`, as passlib writes it. */
export const scrypt: HashKind = {
  claims: (text) => text.startsWith("$scrypt$"),

  read(text) {
    const parts = parsePhcString(text, "scrypt", ["ln", "r", "p"]);
    if (parts === undefined || parts.version !== undefined) {
      return { refused: "scrypt: the form is $scrypt$ln=…,r=…,p=…$salt$hash" };
    }
    const { salt, hash } = parts;
    const [log2N = 0, r = 0, p = 0] = parts.parameters;
    if (log2N < 1 || log2N > 20) return { refused: "scrypt: ln must be 1 to 20" };
    if (r < 1 || r > 64) return { refused: "scrypt: r must be 1 to 64" };
    if (p < 1 || p > 16) return { refused: "scrypt: p must be 1 to 16" };
    // RFC 7914 §2: N is less than 2^(128 * r / 8).
    if (log2N >= 16 * r) return { refused: "scrypt: ln must be less than 16 × r" };
    const N = 2 ** log2N;
    if (128 * N * r > MAX_BYTES) return { refused: "scrypt: ln and r ask for more than 1 GiB" };
    if (128 * N * r * p > MAX_WORK_BYTES) {
      return { refused: "scrypt: ln, r and p ask for more than 4 GiB of work" };
    }
    if (salt.length < 8 || salt.length > 64) {
      return { refused: "scrypt: the salt must have 8 to 64 bytes" };
    }
    if (hash.length < 16 || hash.length > 128) {
      return { refused: "scrypt: the hash must have 16 to 128 bytes" };
    }

    // OpenSSL counts this memory against the limit: N + 2 blocks of working memory, and p blocks of its own.
    const maxmem = 128 * r * (N + p + 2);
    const outdated = log2N < CURRENT_LOG2N || N * r * p < CURRENT_WORK;
    return {
      ...(outdated && { outdated: `scrypt with ln=${log2N},r=${r},p=${p}` }),
      matches: (password) =>
        timingSafeEqual(scryptSync(password, salt, hash.length, { N, r, p, maxmem }), hash),
    };
  },
};

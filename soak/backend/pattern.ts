import { createHash } from "node:crypto";

/** 64 KiB of pseudo-random data that are always the same. */
const BLOCK = Buffer.concat(
  Array.from({ length: 2048 }, (_, turn) => createHash("sha256").update(String(turn)).digest()),
);

/** Returns the first `size` bytes of a body that both sides know. */
export function patternOf(size: number): Buffer {
  return Buffer.alloc(size, BLOCK);
}

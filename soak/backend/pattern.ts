import { createHash } from "node:crypto";

/** 64 KiB that look like nothing in particular and are the same everywhere. */
const BLOCK = Buffer.concat(
  Array.from({ length: 2048 }, (_, turn) => createHash("sha256").update(String(turn)).digest()),
);

/** The first `size` bytes of a body that both sides know. */
export function patternOf(size: number): Buffer {
  return Buffer.alloc(size, BLOCK);
}

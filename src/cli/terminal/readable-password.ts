import { randomInt } from "node:crypto";

/** Letters and digits that do not look alike. */
const LETTERS = "abcdefghijkmnpqrstuvwxyz23456789";

/** Returns a new password: 80 random bits in groups of four characters. */
export function readablePassword(): string {
  const group = (): string =>
    Array.from({ length: 4 }, () => LETTERS.charAt(randomInt(LETTERS.length))).join("");
  return [group(), group(), group(), group()].join("-");
}

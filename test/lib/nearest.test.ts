import { expect, test } from "vitest";
import { nearest } from "../../src/lib/text/nearest.ts";

const KEYS = ["listen", "tls", "workers", "trustedProxies", "limits", "timeouts"];

test.each([
  ["listn", "listen"],
  ["lisetn", "listen"],
  ["tsl", "tls"],
  ["trustedproxies", "trustedProxies"],
  ["timeoutss", "timeouts"],
])("%s was probably meant to be %s", (word, candidate) => {
  expect(nearest(word, KEYS)).toBe(candidate);
});

test.each(["", "port", "certificate"])("%j has no suggestion", (word) => {
  expect(nearest(word, KEYS)).toBeUndefined();
});

test("a very long word takes little time", () => {
  expect(nearest("x".repeat(1_000_000), KEYS)).toBeUndefined();
});

import { expect, test } from "vitest";
import { keep } from "../../src/lib/kept.ts";

test("what would be made from the same is taken over, everything else is made anew", () => {
  const first = keep(undefined, { key: ["a", 1] }, () => ({}));
  expect(keep(first, { key: ["a", 1] }, () => ({}))).toBe(first);
  for (const other of [{ key: ["a", 2] }, { key: "a1" }, {}, undefined]) {
    expect(keep(first, other, () => ({})).value).not.toBe(first.value);
  }
});

test("what it was made from is not kept: it may hold private keys", () => {
  const secret = "-----BEGIN PRIVATE KEY-----";
  expect(JSON.stringify(keep(undefined, { tls: { key: secret } }, () => "made"))).not.toContain(
    "PRIVATE",
  );
});

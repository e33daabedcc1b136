import fc from "fast-check";
import { expect, test } from "vitest";
import { Identity } from "../../src/core/request/identity.ts";
import { readToken } from "../../src/tokens/verify/token-text.ts";
import { verifierFor } from "./fixture.ts";
import { good, keys } from "./forgery.ts";

const PIECES = [
  "",
  ".",
  "..",
  "=",
  "-",
  "_",
  "+",
  "/",
  "A",
  "B",
  " ",
  "\n",
  "\u00a0",
  "\0",
  "é",
  "%3D",
];

/** A valid token with a few changes anywhere. */
const changed = fc
  .array(fc.tuple(fc.nat(good.length), fc.nat(3), fc.constantFrom(...PIECES)), {
    minLength: 1,
    maxLength: 3,
  })
  .map((changes) => {
    let text = good;
    for (const [at, cut, put] of changes) text = text.slice(0, at) + put + text.slice(at + cut);
    return text;
  });
const jsonPart = fc
  .oneof(
    fc.record({ alg: fc.constantFrom("ES256", "none", "HS256", 1, null), kid: fc.anything() }),
    fc.json(),
    fc.string(),
  )
  .map((value) => {
    const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
    return Buffer.from(text).toString("base64url");
  });
const made = fc.array(jsonPart, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("."));
const anything = fc.oneof(changed, made, fc.string({ unit: "binary" }));

test("nothing throws, and only the canonical spelling is read", () => {
  fc.assert(
    fc.property(anything, (text) => {
      const read = readToken(text);
      if ("reason" in read) return;
      const again = text
        .split(".")
        .map((part) => Buffer.from(part, "base64url").toString("base64url"));
      expect(again).toHaveLength(3);
      expect(again.join(".")).toBe(text);
      expect(read.payload).toBeTypeOf("object");
    }),
    { numRuns: 3000 },
  );
});

test("only the exact signed text is accepted, before and after it is cached", async () => {
  const { verifier } = verifierFor(keys);
  await fc.assert(
    fc.asyncProperty(changed, fc.boolean(), async (text, remembered) => {
      if (remembered) expect(await verifier.verify(good)).toBeInstanceOf(Identity);
      const verdict = await verifier.verify(text);
      if (text === good) expect(verdict).toBeInstanceOf(Identity);
      else expect(verdict).toBeTypeOf("string");
    }),
    { numRuns: 1500 },
  );
});

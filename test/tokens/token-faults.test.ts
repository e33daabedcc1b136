import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readClaims } from "../../src/tokens/claims.ts";
import { claimFaults, formFault, readableParts } from "../../src/tokens/token-faults.ts";
import { readToken } from "../../src/tokens/token-text.ts";
import { compact } from "../support/compact-token.ts";

const header = fc.record(
  {
    alg: fc.constantFrom<unknown>("ES256", "HS256", "none", "ES256K", 1, null),
    kid: fc.constantFrom<unknown>("a", "", 1, null),
    typ: fc.constantFrom<unknown>("JWT", "at+jwt", "application/jwt", "logout+jwt", 1),
    crit: fc.constantFrom<unknown>([], ["b64"]),
    b64: fc.boolean(),
    zip: fc.constant("DEF"),
  },
  { requiredKeys: ["alg"] },
);
const name = fc.constantFrom<unknown>("a", "", "a\u0007", "\uD800", 1, null, "x".repeat(256));
const date = fc.constantFrom<unknown>(0, 5, -5, 1.5, "5", null, 1e300, 2 ** 53);
const claims = fc.record(
  {
    sub: fc.oneof({ weight: 3, arbitrary: fc.constant("alice") }, name),
    aud: fc.constantFrom<unknown>("a", ["a"], "b"),
    groups: fc.oneof(fc.array(name, { maxLength: 2 }), fc.constant(["a"]), name),
    ...{ iat: date, nbf: date, exp: date },
  },
  { requiredKeys: [] },
);

describe("words for a fault", () => {
  it("of the form are there exactly when the reader refuses the token", () => {
    const text = fc
      .tuple(header, claims, fc.constantFrom("", "x", "=", ".", "\n", " "))
      .map(([head, body, more]) => compact(head, body, () => Buffer.from("sig")) + more);
    fc.assert(
      fc.property(fc.oneof(text, fc.string()), (token) => {
        expect(formFault(token) === undefined).toBe(typeof readToken(token) !== "string");
      }),
      { numRuns: 2_000 },
    );
  });

  it("of the claims are there exactly when they are read as malformed", () => {
    const expectations = { audience: "a", skewMs: 0, issuedAheadMs: 0 };
    fc.assert(
      fc.property(claims, (payload) => {
        const malformed = readClaims(payload, "i", expectations, 0) === "malformed";
        expect(claimFaults(payload).length > 0).toBe(malformed);
      }),
      { numRuns: 2_000 },
    );
  });

  it("name the claim", () => {
    expect(claimFaults({ sub: "a", groups: "admin", exp: "5" })).toEqual([
      expect.stringMatching(/^"groups" /),
      expect.stringMatching(/^"exp" /),
    ]);
  });
});

it("what can be read of a broken token is read", () => {
  const token = compact({ alg: "none" }, { sub: "a" }, () => Buffer.alloc(0));
  expect(readableParts(token)).toEqual({ header: { alg: "none" }, claims: { sub: "a" } });
  expect(readableParts("a.b")).toEqual({ header: undefined, claims: undefined });
});

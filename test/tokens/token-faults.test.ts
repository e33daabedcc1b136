import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { claimFaults, readClaims } from "../../src/tokens/verify/claims.ts";
import { readableParts, readToken } from "../../src/tokens/verify/token-text.ts";
import { compact } from "../support/compact-token.ts";

const name = fc.constantFrom<unknown>("a", "", "a\u0007", "\uD800", 1, null, "x".repeat(256));
const date = fc.constantFrom<unknown>(0, 5, -5, 1.5, "5", null, 1e300, 2 ** 53);
const claims = fc.record(
  {
    sub: fc.oneof({ weight: 3, arbitrary: fc.constant("alice") }, name),
    aud: fc.constantFrom<unknown>("a", ["a"], "b"),
    groups: fc.oneof(fc.array(name, { maxLength: 2 }), fc.constant(["a"]), name),
    iat: date,
    nbf: date,
    exp: date,
  },
  { requiredKeys: [] },
);

describe("the description of a fault", () => {
  it("says what is wrong with the form", () => {
    const token = (head: object, more = ""): string =>
      compact(head, { sub: "a" }, () => Buffer.from("sig")) + more;
    const told = (text: string): string | undefined => {
      const read = readToken(text);
      return "reason" in read ? read.detail : undefined;
    };
    const good = token({ alg: "ES256", typ: "at+jwt" });
    expect(told(good)).toBeUndefined();
    expect([
      told(""),
      told("a.b.c.d"),
      told(".b.c"),
      told(token({ alg: "ES256" }, "=")),
      told("eyJhIjoxLCJhIjoyfQ.e30.AAAA"),
      told("e30.W10.AAAA"),
      told(token({ alg: "ES256", crit: [] })),
      told(token({})),
      told(token({ alg: "ES256", kid: 1 })),
      told(token({ alg: "ES256", typ: "logout+jwt" })),
      told(token({ alg: "none" })),
    ]).toEqual([
      "it has 1 parts joined by dots instead of 3",
      "it has more than 3 parts joined by dots instead of 3",
      "the header is empty",
      "the signature is not base64url without padding",
      "the header is not a JSON object with unique names",
      "the payload is not a JSON object with unique names",
      'the header has "crit", which is not supported',
      'the header has no "alg"',
      '"kid" is not a string',
      '"typ" is not the type of an access token',
      '"alg" is not a supported signature algorithm',
    ]);
  });

  it("names the claims exactly when they are malformed", () => {
    const expectations = { audiences: ["a"], skewMs: 0, issuedAheadMs: 0 };
    fc.assert(
      fc.property(claims, (payload) => {
        const malformed = readClaims(payload, "i", expectations, 0) === "malformed";
        expect(claimFaults(payload).length > 0).toBe(malformed);
      }),
      { numRuns: 2_000 },
    );
  });

  it("names the claim", () => {
    expect(claimFaults({ sub: "a", groups: "admin", exp: "5" })).toEqual([
      expect.stringMatching(/^"groups" /),
      expect.stringMatching(/^"exp" /),
    ]);
  });
});

it("shows the readable parts of a broken token", () => {
  const token = compact({ alg: "none" }, { sub: "a" }, () => Buffer.alloc(0));
  expect(readableParts(token)).toEqual({ header: { alg: "none" }, claims: { sub: "a" } });
  expect(readableParts("a.b")).toEqual({ header: undefined, claims: undefined });
});

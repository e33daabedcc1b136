import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { ClaimValue } from "../../src/core/request/identity.ts";
import { IDENTITY_PRESETS, identityHeaders } from "../../src/upstream/headers/identity-headers.ts";
import { identityWith } from "../support/permit.ts";
import { valuesIn } from "../support/pairs.ts";

const names = IDENTITY_PRESETS.sallyport;

/** An ASCII field value (RFC 9110 §5.5): no control characters, no spaces at the ends. */
const FIELD_VALUE = /^(?:[!-~](?:[ -~]*[!-~])?)?$/;

const claim = fc
  .oneof(
    fc.string({ unit: "grapheme" }),
    fc.string({ unit: "binary" }),
    fc.string({ unit: fc.constantFrom("a", " ", ",", "%", "\u00e9", "\r", "\n", "\0", "\t", "2") }),
  )
  .filter((text) => text.isWellFormed());

describe("a subject", () => {
  test.each([
    ["alice", "alice"],
    ["alice@example.com", "alice@example.com"],
    ["Alice B. (sales)", "Alice B. (sales)"],
    ["a,b", "a,b"],
    ["Zo\u00eb", "Zo%C3%AB"],
    ["\u6771\u4eac", "%E6%9D%B1%E4%BA%AC"],
    ["100%", "100%25"],
    ["%61", "%2561"],
    [" alice", "%20alice"],
    ["alice ", "alice%20"],
    ["a@b.c\u00e9", "a@b.c%C3%A9"],
    ["100% \u00e9", "100%25 %C3%A9"],
    ["  a  ", "%20 a %20"],
    [" ", "%20"],
    ["a\r\nX-Admin: 1", "a%0D%0AX-Admin: 1"],
    ["a\tb", "a%09b"],
    ["\u0000", "%00"],
    ["\u007f", "%7F"],
    ["\u0085", "%C2%85"],
    ["\ud83d\ude00", "%F0%9F%98%80"],
    ["a\ud800", "a%EF%BF%BD"],
  ])("%j is sent as %s", (subject, value) => {
    expect(identityHeaders(names, identityWith({ subject }))[1]).toBe(value);
  });

  test("is always a valid field value, and can be decoded", () => {
    fc.assert(
      fc.property(claim, claim, (subject, issuer) => {
        const got = identityHeaders(names, identityWith({ subject, issuer }));
        for (const [name, wanted] of [
          ["x-auth-subject", subject],
          ["x-auth-issuer", issuer],
        ] as const) {
          const [value = ""] = valuesIn(got, name);
          expect(value).toMatch(FIELD_VALUE);
          expect(decodeURIComponent(value)).toBe(wanted);
        }
      }),
      { numRuns: 1000 },
    );
  });
});

describe("groups", () => {
  test.each([
    [[], ""],
    [["sales"], "sales"],
    [["sales", "admin"], "sales,admin"],
    [["a,b", "c"], "a%2Cb,c"],
    [["\u00e9", " x"], "%C3%A9,%20x"],
    [["50%", "a b"], "50%25,a b"],
    [["\u00e9,x"], "%C3%A9%2Cx"],
  ])("%j are sent as %j", (groups, value) => {
    expect(valuesIn(identityHeaders(names, identityWith({ groups })), "x-auth-groups")).toEqual([
      value,
    ]);
  });

  test("are always a valid field value, and can be decoded one by one", () => {
    const groups = fc.array(
      claim.filter((name) => name !== ""),
      { minLength: 1, maxLength: 5 },
    );
    fc.assert(
      fc.property(groups, (all) => {
        const got = identityHeaders(names, identityWith({ groups: all }));
        const [value = ""] = valuesIn(got, "x-auth-groups");
        expect(value).toMatch(FIELD_VALUE);
        expect(value.split(",").map((each) => decodeURIComponent(each))).toEqual(all);
      }),
      { numRuns: 1000 },
    );
  });

  test("that are not well-formed are not an error", () => {
    const got = identityHeaders(names, identityWith({ groups: ["a,\ud800", "\udfff"] }));
    expect(valuesIn(got, "x-auth-groups")).toEqual(["a%2C%EF%BF%BD,%EF%BF%BD"]);
  });
});

describe("a claim", () => {
  const sent = (...values: ClaimValue[]): string[] =>
    values.map((value) => {
      const identity = identityWith({ claims: new Map([["roles", value]]) });
      const all = identityHeaders({ subject: "X-User", claims: { "X-Roles": "roles" } }, identity);
      return valuesIn(all, "x-roles").join("|");
    });

  test("with a comma differs from a list", () => {
    const values = [["user", "admin"], "user,admin", ["user,admin", "x"], "a,", ["a", ""], ","];
    expect(sent(...values)).toEqual([
      ...["user,admin", "user%2Cadmin", "user%2Cadmin,x", "a%2C", "a,", "%2C"],
    ]);
  });

  test("arrives differently from every other one, but for a list of one or none", () => {
    const value = fc.oneof(claim, fc.array(claim, { minLength: 2, maxLength: 3 }));
    fc.assert(
      fc.property(value, value, (one, other) => {
        fc.pre(JSON.stringify(one) !== JSON.stringify(other));
        const [first, second] = sent(one, other);
        expect(first).not.toBe(second);
        expect(first).toMatch(FIELD_VALUE);
      }),
      { numRuns: 1000 },
    );
  });
});

test("a part without a configured header is not sent", () => {
  expect(identityHeaders({ subject: "X-User" }, identityWith())).toEqual(["X-User", "alice"]);
});

/** Every kind of requirement is enforced, explained and put in challenges; a new kind must pass this, too. */
import { describe, expect, test } from "vitest";
import type { IdentityClaims } from "../../src/core/request/identity.ts";
import {
  type Requirements,
  compileRequirements,
  explainRequirements,
  isWeakerRequirement,
  meets,
  requirementWords,
} from "../../src/policy/authorize.ts";
import { createRouteTable } from "../../src/policy/route-table.ts";
import { identityWith, routeWith } from "../support/permit.ts";

interface Example {
  readonly require: Requirements;
  readonly words: readonly string[];
  /** A caller that fulfils it. The caller of `identityWith` does not. */
  readonly met: Partial<IdentityClaims>;
  readonly challenge?: string;
  /** The parts of a token that the configuration must preserve. */
  readonly needs?: Partial<ReturnType<typeof compileRequirements>["needs"]>;
}

const EXAMPLES = {
  groups: {
    require: { groups: { any: ["ops"] } },
    words: ["one group of ops"],
    met: { groups: ["ops"] },
  },
  scopes: {
    require: { scopes: { all: ["read", "write"] } },
    words: ["every scope of read,write"],
    met: { scopes: ["write", "read"] },
    challenge: "read write",
    needs: { scopes: true },
  },
  claims: {
    require: { claims: [{ claim: "tier", equals: 1 }] },
    words: ["every claim tier of 1"],
    met: { claims: new Map([["tier", 1]]) },
    needs: { names: ["tier"] },
  },
  issuers: {
    require: { issuers: ["https://idp.example.com"] },
    words: ["one issuer of https://idp.example.com"],
    met: { issuer: "https://idp.example.com" },
  },
  proof: {
    require: { proof: true },
    words: ["one proof of key,certificate"],
    met: { bound: { jkt: "x", x5t: undefined } },
  },
  spiffe: {
    require: { spiffe: ["spiffe://example.org/ns/shop/*"] },
    words: ["one SPIFFE ID of spiffe://example.org/ns/shop/*"],
    met: { claims: new Map([["spiffe_id", "spiffe://example.org/ns/shop/web"]]) },
  },
} satisfies Record<keyof Requirements, Example>;

describe.each(Object.entries<Example>(EXAMPLES))("%s", (_kind, example) => {
  const { require, words, challenge, needs } = example;
  const met = identityWith(example.met);
  const unmet = identityWith();

  test("are enforced", () => {
    expect(meets(met, require)).toBe(true);
    expect(meets(unmet, require)).toBe(false);
  });

  test("are enforced in addition to the other kinds", () => {
    const impossible: Requirements = { groups: { any: ["nobody"] } };
    const first = { ...impossible, ...require };
    expect(meets(unmet, first)).toBe(false);
    for (const other of Object.values<Example>(EXAMPLES)) {
      if (other !== example) expect(meets(met, { ...other.require, ...require })).toBe(false);
    }
  });

  test("are explained, with the caller's values", () => {
    expect(requirementWords(require)).toEqual(words);
    expect(explainRequirements(require, met)).toMatchObject(words.map(() => ({ met: true })));
    expect(explainRequirements(require, unmet)).toMatchObject(words.map(() => ({ met: false })));
    expect(explainRequirements(require, undefined)).toMatchObject(
      words.map(() => ({ met: false, held: [] })),
    );
  });

  test("are stricter than none", () => {
    expect(isWeakerRequirement({}, require)).toBe(true);
    expect(isWeakerRequirement(require, {})).toBe(false);
  });

  test("are in the challenge if they are scopes", () => {
    expect(compileRequirements(require).challenge).toBe(challenge);
  });

  test("name the claims they compare", () => {
    expect(compileRequirements(require).needs).toEqual({ scopes: false, names: [], ...needs });
  });
});

test("a requirement of an unknown kind is never ignored", () => {
  const require = { unknown: { any: ["orders"] } } as Requirements;
  expect(() => meets(identityWith(), require)).toThrow("unknown");
  expect(() => createRouteTable([routeWith({ require })])).toThrow("unknown");
});

import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { Identity } from "../../src/core/request/identity.ts";
import { isSignedWith } from "../../src/tokens/keys/algorithms.ts";
import type { SigningKeys } from "../../src/tokens/keys/key-ring.ts";
import {
  AUDIENCE,
  ecPair,
  encoded,
  goodClaims,
  NOW,
  ownKeys,
  signerOf,
  tokenOf,
  verifierFor,
} from "./fixture.ts";

let keys: SigningKeys;
beforeAll(async () => {
  keys = await ownKeys();
});

// Counts the signature checks without changing them. Reloads modules that other test files of this process have loaded.
vi.hoisted(() => vi.resetModules());
afterAll(() => void vi.resetModules());
vi.mock("../../src/tokens/keys/algorithms.ts", { spy: true });
const checks = vi.mocked(isSignedWith);
afterEach(() => void checks.mockClear());

/** Returns whether a token is accepted, or why not. */
async function verdict(token: string): Promise<string> {
  const result = await verifierFor(keys).verifier.verify(token);
  return typeof result === "string" ? result : "accepted";
}

describe("claims", () => {
  test.each<[string, Record<string, unknown>, string]>([
    ["all as it should be", {}, "accepted"],
    ["no exp", { exp: undefined }, "no_expiry"],
    ["a key that it is bound to", { cnf: { jkt: "x" } }, "sender_constrained"],
    ["exp as text", { exp: String(NOW + 600) }, "malformed"],
    ["exp null", { exp: null }, "malformed"],
    ["exp as a list", { exp: [NOW + 600] }, "malformed"],
    ["exp far beyond whole numbers", { exp: 1e300 }, "malformed"],
    ["exp negative", { exp: -1 }, "expired"],
    ["exp now", { exp: NOW }, "expired"],
    ["exp in a second", { exp: NOW + 1 }, "accepted"],
    ["exp with a fraction", { exp: NOW + 0.5 }, "accepted"],
    ["exp a fraction ago", { exp: NOW - 0.5 }, "expired"],
    ["nbf ahead", { nbf: NOW + 1 }, "not_yet_valid"],
    ["nbf now", { nbf: NOW }, "accepted"],
    ["nbf as text", { nbf: "0" }, "malformed"],
    ["no iat", { iat: undefined }, "accepted"],
    ["iat a minute ahead", { iat: NOW + 60 }, "accepted"],
    ["iat further ahead", { iat: NOW + 61 }, "not_yet_valid"],
    ["iat null", { iat: null }, "malformed"],
    ["no iss", { iss: undefined }, "issuer"],
    ["another iss", { iss: "sallyport2" }, "issuer"],
    ["iss in another case", { iss: "Sallyport" }, "issuer"],
    ["iss as a list", { iss: ["sallyport"] }, "issuer"],
    ["iss named like a member of objects", { iss: "constructor" }, "issuer"],
    ["no aud", { aud: undefined }, "audience"],
    ["another aud", { aud: "order" }, "audience"],
    ["aud among others", { aud: ["x", AUDIENCE] }, "accepted"],
    ["aud not among others", { aud: ["x"] }, "audience"],
    ["aud with something else among it", { aud: [AUDIENCE, 7] }, "audience"],
    ["aud empty", { aud: [] }, "audience"],
    ["aud an object", { aud: { 0: AUDIENCE } }, "audience"],
    ["no sub", { sub: undefined }, "malformed"],
    ["sub empty", { sub: "" }, "malformed"],
    ["sub a number", { sub: 7 }, "malformed"],
    ["sub of 255", { sub: "a".repeat(255) }, "accepted"],
    ["sub of 256", { sub: "a".repeat(256) }, "malformed"],
    ["sub with a line break", { sub: "alice\r\nX-Auth-Groups: admin" }, "malformed"],
    ["no groups", { groups: undefined }, "accepted"],
    ["groups as text", { groups: "admin" }, "malformed"],
    ["groups null", { groups: null }, "malformed"],
    ["groups with a number", { groups: ["a", 1] }, "malformed"],
    ["groups with a control character", { groups: ["a\u0000"] }, "malformed"],
  ])("%s", async (_name, claims, expected) => {
    expect(await verdict(await tokenOf(signerOf(keys), claims))).toBe(expected);
  });

  test("the identity contains what the token says", async () => {
    const identity = await verifierFor(keys).verifier.verify(await tokenOf(signerOf(keys)));
    expect(Identity.is(identity)).toBe(true);
    expect(identity).toMatchObject({
      subject: "alice",
      groups: ["sales"],
      issuer: "sallyport",
      expiresAt: NOW + 600,
    });
  });

  test("cheap checks are done before the signature is verified", async () => {
    const { verifier } = verifierFor(keys);
    const signer = signerOf(keys);
    for (const claims of [
      { exp: NOW },
      { iss: "x" },
      { aud: "x" },
      { sub: "" },
      { nbf: NOW + 9 },
    ]) {
      expect(verifier.verify(await tokenOf(signer, claims))).toBeTypeOf("string");
    }
    expect(checks).not.toHaveBeenCalled();
  });
});

describe("type, key and size", () => {
  test.each<[string, Record<string, unknown>, string]>([
    ["typ JWT", { typ: "JWT" }, "accepted"],
    ["typ at+jwt", { typ: "at+jwt" }, "accepted"],
    ["typ in full", { typ: "application/AT+JWT" }, "accepted"],
    ["a logout token", { typ: "logout+jwt" }, "malformed"],
    ["typ a number", { typ: 1 }, "malformed"],
    ["no kid and one key", { kid: undefined }, "accepted"],
  ])("%s", async (_name, header, expected) => {
    expect(await verdict(await tokenOf(signerOf(keys), {}, header))).toBe(expected);
  });

  test("without a kid exactly one key must fit", async () => {
    const [one, two] = [await ownKeys(), await ownKeys()];
    const both = { signing: one.signing, verification: [...one.verification, ...two.verification] };
    const { algorithm, key } = signerOf(one);
    const { verifier } = verifierFor(both);
    expect(await verifier.verify(await tokenOf({ algorithm, key }))).toBe("unknown_key");
    expect(Identity.is(await verifier.verify(await tokenOf(signerOf(two))))).toBe(true);
  });

  test("longer tokens than the maximum are refused", async () => {
    const token = await tokenOf(signerOf(keys));
    const { verifier, cache } = verifierFor(keys, { maxBytes: token.length });
    expect(Identity.is(await verifier.verify(token))).toBe(true);
    expect(verifier.verify(`${token}A`)).toBe("too_large");
    expect(cache).toEqual({ hit: 0, miss: 1, forged: 0 });
    expect(verifierFor(keys).verifier.verify("a".repeat(8193))).toBe("too_large");
  });
});

describe("the cache", () => {
  test("a verified token is accepted at once, without another signature check", async () => {
    const { verifier, cache } = verifierFor(keys);
    const token = await tokenOf(signerOf(keys));
    const first = await verifier.verify(token);
    for (let round = 0; round < 2000; round++) expect(verifier.verify(token)).toBe(first);
    expect(checks).toHaveBeenCalledTimes(1);
    expect(cache).toEqual({ hit: 2000, miss: 1, forged: 0 });
    expect(verifier.entries()).toBe(1);
  });

  test("2,000 concurrent requests with one new token cost one signature check", async () => {
    const { verifier, cache } = verifierFor(keys);
    const token = await tokenOf(signerOf(keys));
    const requests = Array.from({ length: 2000 }, async () => verifier.verify(token));
    const results = await Promise.all(requests);
    expect(new Set(results).size).toBe(1);
    expect(results.every(Identity.is)).toBe(true);
    expect(checks).toHaveBeenCalledTimes(1);
    expect(cache).toEqual({ hit: 1999, miss: 1, forged: 0 });
  });

  test("a cached token expires to the second, also when the clock is set forward", async () => {
    const { verifier, clock } = verifierFor(keys);
    const token = await tokenOf(signerOf(keys));
    await verifier.verify(token);
    clock.advance(599_999);
    expect(Identity.is(verifier.verify(token))).toBe(true);
    clock.advance(1);
    expect(verifier.verify(token)).toBe("expired");
    expect(verifier.entries()).toBe(0);

    const later = await tokenOf(signerOf(keys), { exp: NOW + 1200 });
    expect(Identity.is(await verifier.verify(later))).toBe(true);
    clock.advance(365 * 86_400_000);
    expect(verifier.verify(later)).toBe("expired");
  });

  test("a connection that sends its token again is answered from the cache", async () => {
    const { verifier, clock, cache } = verifierFor(keys, { cacheEntries: 1 });
    const [connection, other] = [{}, {}];
    const token = await tokenOf(signerOf(keys));
    const longer = await tokenOf(signerOf(keys), { exp: NOW + 1200 });
    const alice = verifier.verify(token, connection);
    for (let round = 0; round < 3; round++) expect(verifier.verify(token, connection)).toBe(alice);
    // Another token replaces it in the cache and on the connection, but never takes its identity.
    const later = verifier.verify(longer, connection);
    expect(later).toMatchObject({ expiresAt: NOW + 1200 });
    expect(verifier.verify(longer, connection)).toBe(later);
    expect(verifier.verify(`${longer.slice(0, -1)}!`, connection)).toBe("malformed");
    expect(verifier.verify(longer, connection)).toBe(later);
    expect(cache).toEqual({ hit: 5, miss: 3, forged: 0 });
    expect(verifier.verify(token, other)).toMatchObject({ expiresAt: NOW + 600 });
    expect(Identity.is(verifier.verify(token, other))).toBe(true);
    expect(verifier.verify(token, other)).toMatchObject({ expiresAt: NOW + 600 });
    clock.advance(600_000);
    expect(verifier.verify(token, other)).toBe("expired");
    expect(verifier.verify(token, connection)).toBe("expired");
    clock.advance(600_000);
    expect(verifier.verify(longer, connection)).toBe("expired");
  });

  test("refusals are not cached as verdicts; a forged token costs one signature check", async () => {
    const { verifier, clock } = verifierFor(keys);
    const { kid, algorithm } = signerOf(keys);
    const forged = await tokenOf({ kid, algorithm, key: ecPair().privateKey });
    expect(await verifier.verify(forged)).toBe("signature");
    expect(await verifier.verify(forged)).toBe("signature");
    expect(checks).toHaveBeenCalledTimes(1);
    const early = await tokenOf(signerOf(keys), { nbf: NOW + 1 });
    expect(await verifier.verify(early)).toBe("not_yet_valid");
    expect(verifier.entries()).toBe(0);
    clock.advance(1000);
    expect(Identity.is(await verifier.verify(early))).toBe(true);
  });

  test("the same header and payload under another signature is another token", async () => {
    const { verifier } = verifierFor(keys);
    const token = await tokenOf(signerOf(keys));
    await verifier.verify(token);
    const other = await tokenOf({ ...signerOf(keys), key: ecPair().privateKey });
    const start = token.slice(0, token.lastIndexOf("."));
    expect(other.startsWith(start)).toBe(true);
    expect(await verifier.verify(other)).toBe("signature");
    const admin = encoded({ ...goodClaims, groups: ["admin"] });
    const [head, , signature] = token.split(".");
    expect(await verifier.verify(`${head}.${admin}.${signature}`)).toBe("signature");
  });

  test("keeps no more tokens than allowed", async () => {
    const { verifier } = verifierFor(keys, { cacheEntries: 3 });
    for (let each = 0; each < 5; each++) {
      await verifier.verify(await tokenOf(signerOf(keys), { jti: String(each) }));
    }
    expect(verifier.entries()).toBe(3);
  });

  test("keeps no more bytes than allowed, so fewer tokens with many groups", async () => {
    const { verifier, cache } = verifierFor(keys, { cacheEntries: 10_000, cacheBytes: 100_000 });
    const groups = Array.from({ length: 200 }, (_, index) => `cn=team-${index},ou=groups`);
    const tokens = await Promise.all(
      Array.from({ length: 40 }, (_, each) =>
        tokenOf(signerOf(keys), { jti: String(each), groups: each < 20 ? ["sales"] : groups }),
      ),
    );
    const verifyAll = async (some: readonly string[]): Promise<number> => {
      for (const token of some) await verifier.verify(token);
      return verifier.entries();
    };
    expect(await verifyAll(tokens.slice(0, 20))).toBe(20);
    const large = await verifyAll(tokens.slice(20));
    // A token with 200 groups of 22 characters takes about 16 KB.
    expect(large).toBeGreaterThanOrEqual(3);
    expect(large).toBeLessThanOrEqual(10);
    const { hit } = cache;
    await verifier.verify(tokens.at(-1) ?? "");
    expect(cache.hit).toBe(hit + 1);
  });

  test("verifies a token that alone is larger than the cache", async () => {
    const { verifier } = verifierFor(keys, { cacheBytes: 1_000 });
    const groups = Array.from({ length: 200 }, (_, index) => `team-${index}`);
    const token = await tokenOf(signerOf(keys), { groups });
    expect(await verifier.verify(token)).toMatchObject({ subject: "alice" });
    expect(verifier.entries()).toBe(0);
  });
});

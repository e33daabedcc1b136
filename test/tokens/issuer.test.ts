import { decodeJwt, decodeProtectedHeader } from "jose";
import { describe, expect, test } from "vitest";
import { Identity } from "../../src/core/request/identity.ts";
import { ALGORITHMS, isSigningAlgorithm } from "../../src/tokens/keys/algorithms.ts";
import { TokenIssuer } from "../../src/tokens/issuer.ts";
import type { SigningKeys } from "../../src/tokens/keys/key-ring.ts";
import { AUDIENCE, ISSUER, NOW, ownKeys, setClock, signerOf, verifierFor } from "./fixture.ts";

function issuerWith(keys: SigningKeys) {
  const clock = setClock();
  const counted = { issued: 0 };
  const issuer = new TokenIssuer({
    issuer: ISSUER,
    audience: AUDIENCE,
    lifetimeMs: 18_000_000,
    keys,
    observer: { tokenIssued: () => void (counted.issued += 1) },
  });
  return { issuer, clock, counted };
}

const alice = { name: "alice", groups: ["sales", "admin"] };

describe("an issued token", () => {
  test("names the subject, the audience, and the times", async () => {
    const keys = await ownKeys();
    const { issuer, clock, counted } = issuerWith(keys);
    clock.advance(999);
    const token = await issuer.issue(alice, clock.now());
    expect(decodeProtectedHeader(token)).toEqual({
      alg: "ES256",
      kid: signerOf(keys).kid,
      typ: "JWT",
    });
    const { jti, ...claims } = decodeJwt(token);
    expect(claims).toEqual({
      iss: ISSUER,
      sub: "alice",
      aud: AUDIENCE,
      iat: NOW,
      exp: NOW + 18_000,
      groups: ["sales", "admin"],
    });
    expect(jti).toMatch(/^[\w-]{22}$/);
    expect(decodeJwt(await issuer.issue(alice, clock.now())).jti).not.toBe(jti);
    expect(counted.issued).toBe(2);
  });

  test.each(Object.keys(ALGORITHMS).filter(isSigningAlgorithm))(
    "is accepted until its last second (%s)",
    async (algorithm) => {
      const keys = await ownKeys(algorithm);
      const token = await issuerWith(keys).issuer.issue(alice, NOW * 1000);
      const { verifier, clock } = verifierFor(keys);
      clock.advance(17_999_999);
      const identity = await verifier.verify(token);
      expect(Identity.is(identity)).toBe(true);
      expect(identity).toMatchObject({
        subject: "alice",
        groups: ["sales", "admin"],
        issuer: ISSUER,
        expiresAt: NOW + 18_000,
      });
      clock.advance(1);
      expect(await verifier.verify(token)).toBe("expired");
    },
  );
});

test("is refused if no key signs", async () => {
  const { verification } = await ownKeys();
  const { issuer, counted } = issuerWith({ signing: undefined, verification });
  await expect(issuer.issue(alice, NOW * 1000)).rejects.toMatchObject({ code: "keys_unusable" });
  expect(counted.issued).toBe(0);
});

import { decodeJwt, decodeProtectedHeader, jwtVerify } from "jose";
import { describe, expect, test } from "vitest";
import { GateError } from "../../src/core/request/errors.ts";
import { Assertions, type AssertionSettings } from "../../src/tokens/assertion/assertions.ts";
import { ASYMMETRIC_ALGORITHMS, type SigningAlgorithm } from "../../src/tokens/keys/algorithms.ts";
import { makeKey } from "../../src/tokens/keys/key-making.ts";
import { createKeyRing, keysAt, type SigningKeys } from "../../src/tokens/keys/key-ring.ts";
import { mintIdentity } from "../../src/core/request/identity.ts";
import { setClock } from "./fixture.ts";

const SETTINGS: AssertionSettings = {
  issuer: "sallyport",
  audience: "backend",
  lifetime: 60_000,
  header: "X-Auth-Assertion",
  claims: ["groups", "email", "tenant"],
};

async function keysFor(algorithm: SigningAlgorithm): Promise<SigningKeys> {
  const key = makeKey(algorithm, 2048);
  const times = { madeAt: 0, signsFrom: 0, verifiesUntil: Infinity };
  return keysAt(await createKeyRing([{ file: undefined, key, algorithm, ...times }], algorithm), 1);
}

function callerUntil(acceptedUntil: number) {
  const expiresAt = Math.floor(acceptedUntil / 1000);
  const claims = {
    subject: "zoë",
    groups: ["sales", "a,b"],
    issuer: "https://id.example.com",
    claims: new Map([["email", "zoe@example.com"]]),
  };
  return mintIdentity({ ...claims, expiresAt, acceptedUntil });
}

const keys = await keysFor("ES256");

describe("an assertion", () => {
  test.each(ASYMMETRIC_ALGORITHMS)(
    "is a JWT that other libraries verify: %s",
    async (algorithm) => {
      const own = await keysFor(algorithm);
      const clock = setClock();
      const text = new Assertions(SETTINGS, own, clock).for(callerUntil(clock.now() + 3_600_000));
      const { key, kid } = own.verification[0] ?? {};
      if (key === undefined) throw new Error("no key");
      const { payload, protectedHeader } = await jwtVerify(text, key, {
        issuer: "sallyport",
        audience: "backend",
        typ: "assertion+jwt",
        currentDate: new Date(clock.now()),
      });
      const iat = Math.floor(clock.now() / 1000);
      expect(protectedHeader).toEqual({ alg: algorithm, kid, typ: "assertion+jwt" });
      expect(payload).toEqual({
        iss: "sallyport",
        aud: "backend",
        sub: "zoë",
        idp: "https://id.example.com",
        iat,
        exp: iat + 60,
        groups: ["sales", "a,b"],
        email: "zoe@example.com",
      });
    },
  );

  test("is reused until a fifth of its lifetime is left", () => {
    const clock = setClock();
    const assertions = new Assertions(SETTINGS, keys, clock);
    const caller = callerUntil(clock.now() + 3_600_000);
    const first = assertions.for(caller);
    clock.advance(47_000);
    expect(assertions.for(caller)).toBe(first);
    clock.advance(1_001);
    const second = assertions.for(caller);
    expect(decodeJwt(second).exp).toBeGreaterThan(decodeJwt(first).exp ?? 0);
    const other = callerUntil(clock.now() + 3_600_000);
    expect(assertions.for(other)).not.toBe(second);
  });

  test("expires with the token, and is not renewed in vain", () => {
    const clock = setClock();
    const assertions = new Assertions(SETTINGS, keys, clock);
    const ends = clock.now() + 10_000;
    const caller = callerUntil(ends);
    const first = assertions.for(caller);
    expect(decodeJwt(first).exp).toBe(Math.ceil(ends / 1000));
    clock.advance(9_500);
    expect(assertions.for(caller)).toBe(first);
  });

  test("is signed with the current key, and fails without one", async () => {
    const clock = setClock();
    let now: SigningKeys = keys;
    const changing: SigningKeys = {
      get signing() {
        return now.signing;
      },
      verification: [],
    };
    const assertions = new Assertions(SETTINGS, changing, clock);
    const caller = callerUntil(clock.now() + 3_600_000);
    expect(decodeProtectedHeader(assertions.for(caller)).kid).toBe(keys.signing?.kid);
    now = await keysFor("ES256");
    expect(decodeProtectedHeader(assertions.for(caller)).kid).toBe(now.signing?.kid);
    now = { signing: undefined, verification: [] };
    expect(() => assertions.for(caller)).toThrow(GateError);
  });
});

import { afterAll, describe, expect, test, vi } from "vitest";
import { GateError } from "../../src/core/request/errors.ts";
import { Identity } from "../../src/core/request/identity.ts";
import { TokenIssuer } from "../../src/tokens/issuer.ts";
import { makeKey } from "../../src/tokens/keys/key-making.ts";
import { createKeyRing, type KeyRing, publishedKeys } from "../../src/tokens/keys/key-ring.ts";
import { expiriesAfterRotation, type KeyInState } from "../../tools/keys/key-states.ts";
import { OwnKeys } from "../../src/tokens/keys/own-keys.ts";
import { isSignedWith } from "../../src/tokens/keys/algorithms.ts";
import { AUDIENCE, ISSUER, NOW, setClock, verifierFor } from "./fixture.ts";

// Counts the signature checks without changing them. Reloads modules that other test files of this process have loaded.
vi.hoisted(() => vi.resetModules());
afterAll(() => void vi.resetModules());
vi.mock("../../src/tokens/keys/algorithms.ts", { spy: true });

/** Seconds after NOW. */
interface Times {
  readonly made: number;
  readonly signs?: number;
  readonly ends?: number;
}

const keyObjects = new Map<string, ReturnType<typeof makeKey>>();

/** A ring of named keys. The same name always gives the same key. */
async function ring(keys: Record<string, Times>): Promise<KeyRing> {
  const found = Object.entries(keys).map(([name, { made, signs, ends = Infinity }]) => {
    const key = keyObjects.get(name) ?? makeKey("ES256");
    keyObjects.set(name, key);
    return {
      file: name,
      key,
      algorithm: "ES256" as const,
      madeAt: (NOW + made) * 1000,
      signsFrom: signs === undefined ? 0 : (NOW + signs) * 1000,
      verifiesUntil: (NOW + ends) * 1000,
    };
  });
  return createKeyRing(
    found.toSorted((a, b) => b.madeAt - a.madeAt),
    "ES256",
  );
}

/** All that one replica has, on a clock that the test controls. */
async function replica(keys: Record<string, Times>) {
  const clock = setClock();
  const held = new OwnKeys(await ring(keys), clock);
  const { verifier, cache } = verifierFor(held, { clock });
  const issuer = new TokenIssuer({
    issuer: ISSUER,
    audience: AUDIENCE,
    lifetimeMs: 3_600_000,
    keys: held,
    observer: { tokenIssued: () => undefined },
  });
  const logIn = (): Promise<string> => issuer.issue({ name: "alice", groups: [] }, clock.now());
  const verdict = async (token: string): Promise<string> => {
    const result = await verifier.verify(token, cache);
    return Identity.is(result) ? "accepted" : result;
  };
  const signer = (): string | undefined => held.signer?.file;
  return { clock, held, verifier, logIn, verdict, signer };
}

describe("as time passes", () => {
  test("the newest key whose time has come signs, and an older one until then", async () => {
    const { clock, signer } = await replica({ a: { made: -100 }, b: { made: -50, signs: 10 } });
    expect(signer()).toBe("a");
    clock.advance(9_999);
    expect(signer()).toBe("a");
    clock.advance(1);
    expect(signer()).toBe("b");
    clock.advance(-1);
    expect(signer()).toBe("a");
  });

  test("a login uses the key that signs at that moment, and both keys always verify", async () => {
    const { clock, logIn, verdict } = await replica({
      a: { made: -100, ends: 1000 },
      b: { made: 0, signs: 10 },
    });
    const before = await logIn();
    clock.advance(10_000);
    const after = await logIn();
    expect(kidOf(before)).not.toBe(kidOf(after));
    expect([await verdict(before), await verdict(after)]).toEqual(["accepted", "accepted"]);
  });

  test("a key expires to the millisecond, also for cached tokens", async () => {
    const { clock, logIn, verdict, verifier } = await replica({
      a: { made: -100, ends: 20 },
      b: { made: 0, signs: 10 },
    });
    const token = await logIn();
    const another = await logIn();
    expect(await verdict(token)).toBe("accepted");
    clock.advance(19_999);
    expect(await verdict(token)).toBe("accepted");
    clock.advance(1);
    expect(await verdict(token)).toBe("unknown_key");
    expect(await verdict(another)).toBe("unknown_key");
    expect(verifier.entries()).toBe(0);
  });

  test("without a key that may sign nobody can log in, which is logged", async () => {
    const { clock, logIn, signer } = await replica({ a: { made: -9, signs: 5, ends: 10 } });
    await expect(logIn()).rejects.toBeInstanceOf(GateError);
    clock.advance(5_000);
    expect(signer()).toBe("a");
    await logIn();
    clock.advance(5_000);
    await expect(logIn()).rejects.toMatchObject({ code: "keys_unusable" });
    expect(signer()).toBeUndefined();
  });
});

describe("when the keys change", () => {
  test("tokens of a remaining key stay cached, also when the key gets an expiry", async () => {
    const { clock, held, logIn, verdict } = await replica({ a: { made: -100 } });
    const token = await logIn();
    await verdict(token);
    const checks = vi.mocked(isSignedWith);
    checks.mockClear();
    held.replace(await ring({ a: { made: -100, ends: 30 }, b: { made: 0, signs: 10 } }));
    expect(await verdict(token)).toBe("accepted");
    expect(checks).not.toHaveBeenCalled();
    clock.advance(30_000);
    expect(await verdict(token)).toBe("unknown_key");
    held.replace(await ring({ a: { made: -100, ends: 60 }, b: { made: 0 } }));
    expect(await verdict(token)).toBe("accepted");
  });

  test("only the tokens of a removed key are refused, at once", async () => {
    const { held, logIn, verdict, verifier } = await replica({ a: { made: -100 } });
    const old = await logIn();
    held.replace(await ring({ a: { made: -100 }, b: { made: 0 } }));
    const young = await logIn();
    expect([await verdict(old), await verdict(young)]).toEqual(["accepted", "accepted"]);
    held.replace(await ring({ b: { made: 0 } }));
    expect(verifier.entries()).toBe(1);
    expect([await verdict(old), await verdict(young)]).toEqual(["unknown_key", "accepted"]);
  });
});

const NONE = { signing: undefined, verification: [] };

describe("the published keys", () => {
  test("include keys that sign later, but no expired keys and no secrets", async () => {
    const { clock, held } = await replica({
      a: { made: -100, ends: 20 },
      b: { made: 0, signs: 10 },
    });
    const kids = (): unknown[] =>
      publishedKeys({ keys: held, assertionKeys: NONE }).map(({ kid }) => kid);
    const [b, a] = held.ring.map(({ kid }) => kid);
    expect(kids()).toEqual([b, a]);
    clock.advance(20_000);
    expect(kids()).toEqual([b]);
    for (const key of publishedKeys({ keys: held, assertionKeys: NONE })) {
      expect(Object.keys(key).toSorted()).toEqual(["alg", "crv", "kid", "kty", "use", "x", "y"]);
    }
    const times = { madeAt: 0, signsFrom: 0, verifiesUntil: Infinity };
    const secret = { file: "s", key: makeKey("HS256"), algorithm: "HS256" as const, ...times };
    const shared = new OwnKeys(await createKeyRing([secret], "HS256"), clock);
    expect(shared.signing?.algorithm).toBe("HS256");
    expect(publishedKeys({ keys: shared, assertionKeys: NONE })).toEqual([]);
  });
});

describe("the expiries that a rotation sets", () => {
  const key = makeKey("ES256");
  /** Times are seconds after NOW. */
  const state = (file: string, times: Times, more: Partial<KeyInState> = {}): KeyInState => ({
    file,
    key,
    algorithm: "ES256",
    exposed: false,
    kid: file,
    canSign: true,
    state: "verifying",
    madeAt: (NOW + times.made) * 1000,
    signsFrom: (NOW + (times.signs ?? times.made)) * 1000,
    verifiesUntil: (NOW + (times.ends ?? Infinity)) * 1000,
    ...more,
  });
  const given = (...keys: KeyInState[]): Record<string, number> => {
    const times = { nowMs: NOW * 1000, signsFromMs: (NOW + 600) * 1000, lifetimeMs: 3_600_000 };
    return Object.fromEntries(
      expiriesAfterRotation(keys, times).map((end) => [end.found.file, end.exp - NOW]),
    );
  };

  test("are when the last token has expired, plus a minute for the clocks", () => {
    expect(given(state("a", { made: -9000 }))).toEqual({ a: 600 + 3600 + 60 });
  });

  test("keep an existing expiry, unless it would cut off a token", () => {
    const b = state("b", { made: -10, signs: 300 });
    expect(given(b, state("a", { made: -9000, ends: 3960 }))).toEqual({ b: 4260 });
    expect(given(b, state("a", { made: -9000, ends: 3959 }))).toEqual({ b: 4260, a: 3960 });
    expect(given(state("a", { made: -9000, ends: 100 }))).toEqual({ a: 4260 });
  });

  test("cover keys that an earlier rotation missed, but none that never signs or has expired", () => {
    const now = state("b", { made: -10 });
    expect(given(now, state("a", { made: -9000 }))).toEqual({ b: 4260, a: 3660 });
    expect(given(now, state("a", { made: -9000 }, { canSign: false }))).toEqual({ b: 4260 });
    expect(given(now, state("a", { made: -9000, ends: -1 }, { state: "expired" }))).toEqual({
      b: 4260,
    });
  });
});

function kidOf(token: string): unknown {
  const [head = ""] = token.split(".");
  return JSON.parse(Buffer.from(head, "base64url").toString("utf8"))["kid"];
}

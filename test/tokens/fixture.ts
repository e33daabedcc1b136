import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { SignJWT } from "jose";
import { onTestFinished } from "vitest";
import { BoundToken } from "../../src/core/request/bound-token.ts";
import { Identity } from "../../src/core/request/identity.ts";
import type {
  TokenRefusal,
  UnprovenVerdict,
  VerificationNotes,
} from "../../src/core/request/token-verifier.ts";
import type { Clock } from "../../src/lib/clock.ts";
import type { SigningAlgorithm } from "../../src/tokens/keys/algorithms.ts";
import type { SigningKeys } from "../../src/tokens/keys/key-ring.ts";
import { loadSigningKeys } from "../../src/tokens/keys/watched-keys.ts";
import { TokenVerifier, type TokenVerifierOptions } from "../../src/tokens/verify/verifier.ts";
import { recordedLog } from "../support/recorded-log.ts";

/** The time of the tests, in seconds since the epoch. */
export const NOW = 1_800_000_000;
export const ISSUER = "sallyport";
export const AUDIENCE = "orders";

export interface SetClock extends Clock {
  /** Advances both clocks. */
  advance(milliseconds: number): void;
}

export function setClock(): SetClock {
  let passed = 0;
  return {
    now: () => NOW * 1000 + passed,
    monotonic: () => 5_000 + passed,
    advance(milliseconds) {
      passed += milliseconds;
    },
  };
}

/**
 * A verifier for `AUDIENCE`. Its verdicts are the caller or the reason; it also shows its cache. Closed with the test.
 */
export function verifierFor(keys: SigningKeys, options: Partial<TokenVerifierOptions> = {}) {
  const clock = setClock();
  const log = recordedLog();
  const cache = { hit: 0, miss: 0, forged: 0 };
  const caching = new TokenVerifier({
    issuer: ISSUER,
    audience: AUDIENCE,
    keys,
    cacheEntries: 100,
    cacheBytes: 16 * 1024 * 1024,
    maxBytes: 8192,
    clock,
    log,
    ...options,
  });
  onTestFinished(() => caching.close());
  const verifier = {
    entries: () => caching.entries,
    close: () => caching.close(),
    verify(token: string, connection?: object) {
      const notes: VerificationNotes = { tokenCache: undefined };
      const verdict = caching.verify(token, connection, notes);
      if (notes.tokenCache !== undefined) cache[notes.tokenCache] += 1;
      return verdict instanceof Promise ? verdict.then(reasonOf) : reasonOf(verdict);
    },
  };
  return { verifier, clock, log, cache };
}

function reasonOf(verdict: UnprovenVerdict): Identity | TokenRefusal["reason"] | "bound" {
  if (verdict instanceof BoundToken) return "bound";
  return verdict instanceof Identity ? verdict : verdict.reason;
}

export function ownKeys(algorithm: SigningAlgorithm = "ES256"): Promise<SigningKeys> {
  return loadSigningKeys({ algorithm, log: recordedLog() });
}

/** The key that signs. */
export function signerOf(keys: SigningKeys) {
  if (keys.signing === undefined) throw new Error("nothing signs");
  return keys.signing;
}

export const goodClaims = {
  iss: ISSUER,
  sub: "alice",
  aud: AUDIENCE,
  iat: NOW,
  exp: NOW + 600,
  groups: ["sales"],
};

/** A token that anybody with this key could make. */
export function tokenOf(
  { kid, algorithm, key }: { kid?: string; algorithm: string; key: KeyObject | Uint8Array },
  claims: Record<string, unknown> = {},
  header: Record<string, unknown> = {},
): Promise<string> {
  const kept = Object.entries({ ...goodClaims, ...claims }).filter(
    ([, value]) => value !== undefined,
  );
  return new SignJWT(Object.fromEntries(kept))
    .setProtectedHeader({ alg: algorithm, ...(kid === undefined ? {} : { kid }), ...header })
    .sign(key);
}

export function encoded(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return Buffer.from(text).toString("base64url");
}

export function pem(key: KeyObject): string {
  return key.type === "public"
    ? key.export({ format: "pem", type: "spki" })
    : key.export({ format: "pem", type: "pkcs8" });
}

export function ecPair(namedCurve = "P-256") {
  return generateKeyPairSync("ec", { namedCurve });
}

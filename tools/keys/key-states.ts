import type { SigningAlgorithm } from "../../src/tokens/keys/algorithms.ts";
import { type FoundKey, keysIn, readKeyFiles } from "../../src/tokens/keys/key-directory.ts";
import { createKeyRing, type KeyState, stateOf } from "../../src/tokens/keys/key-ring.ts";

/** A key file, and the state of its key at a time. */
export interface KeyInState extends FoundKey {
  readonly kid: string;
  readonly state: KeyState;
  readonly canSign: boolean;
}

export interface KeyStates {
  readonly algorithm: SigningAlgorithm;
  /** One for each file, newest first. */
  readonly keys: readonly KeyInState[];
}

/**
 * Returns the states of the keys of a directory, which may be empty. Throws `ConfigError` with every file that holds no
 * usable key.
 *
 * @param algorithm the algorithm that tokens are signed with; by default the algorithm of the newest key that can sign,
 * else ES256.
 * @param nowMs wall clock.
 */
export async function keyStates(
  directory: string,
  algorithm: SigningAlgorithm | undefined,
  nowMs: number,
): Promise<KeyStates> {
  const files = await readKeyFiles(directory);
  if (files.files.length === 0) return { algorithm: algorithm ?? "ES256", keys: [] };
  const newest = keysIn(files, algorithm ?? "ES256");
  const known = algorithm ?? newest.find(({ key }) => key.type !== "public")?.algorithm ?? "ES256";
  const found = keysIn(files, known);
  const ring = await createKeyRing(found, known);
  const keys: KeyInState[] = [];
  for (const each of found) {
    const [own] = await createKeyRing([each], known);
    if (own === undefined) continue;
    keys.push({ ...each, kid: own.kid, canSign: own.canSign, state: stateOf(own, ring, nowMs) });
  }
  return { algorithm: known, keys };
}

export interface KeyExpiry {
  readonly found: FoundKey;
  /** Seconds since the epoch. */
  readonly exp: number;
}

export interface RotationTimes {
  /** Wall clock, milliseconds since the epoch. */
  readonly nowMs: number;
  /** When the new key starts to sign, milliseconds since the epoch. */
  readonly signsFromMs: number;
  /** Lifetime of tokens, in milliseconds. */
  readonly lifetimeMs: number;
}

/**
 * Maximum difference between the clocks of replicas, in seconds. A replica whose clock is behind signs with the old key
 * that much longer.
 */
const CLOCK_SKEW_S = 60;

/**
 * Returns when the older signing keys expire after a rotation: each key expires with the last token that it signed. A
 * key that an earlier rotation has already given an expiry keeps it, unless that is too early.
 *
 * @param keys newest first, without the new one.
 */
export function expiriesAfterRotation(
  keys: readonly KeyInState[],
  { nowMs, signsFromMs, lifetimeMs }: RotationTimes,
): KeyExpiry[] {
  const ends: KeyExpiry[] = [];
  // When the next newer key starts to sign.
  let stops = signsFromMs;
  for (const found of keys.filter(({ canSign, state }) => canSign && state !== "expired")) {
    const exp = Math.ceil((Math.max(stops, nowMs) + lifetimeMs) / 1000) + CLOCK_SKEW_S;
    const tooEarly = stops > nowMs && found.verifiesUntil < exp * 1000;
    if (found.verifiesUntil === Infinity || tooEarly) ends.push({ found, exp });
    stops = Math.min(stops, Math.max(found.signsFrom, found.madeAt));
  }
  return ends;
}

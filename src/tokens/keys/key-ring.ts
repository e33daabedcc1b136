import { createPublicKey, hkdfSync, type KeyObject } from "node:crypto";
import { calculateJwkThumbprint } from "jose/jwk/thumbprint";
import type { SigningAlgorithm } from "./algorithms.ts";
import type { FoundKey } from "./key-directory.ts";
import type { VerificationKey } from "./key-set.ts";

/** Our own keys at one moment. */
export interface SigningKeys {
  /** Undefined if no key signs. Tokens are then verified but not issued. */
  readonly signing: Pick<OwnKey, "kid" | "algorithm" | "key"> | undefined;
  readonly verification: readonly VerificationKey[];
}

/** A found key without what concerns only its file. */
interface UsableKey extends Omit<FoundKey, "exposed" | "file"> {
  /** Undefined for an ephemeral key, generated at startup. */
  readonly file: string | undefined;
}

/** One of our own keys with its times, in milliseconds since the epoch. */
export interface OwnKey extends UsableKey {
  /** The RFC 7638 thumbprint. */
  readonly kid: string;
  /** The public half, or the secret. */
  readonly verifier: KeyObject;
  readonly canSign: boolean;
}

/** All of our keys, newest first, without duplicates. Plain objects, to be posted to a thread. */
export type KeyRing = readonly OwnKey[];

/**
 * @param found the keys, newest first.
 * @param configured the algorithm that tokens are signed with.
 */
export async function createKeyRing(
  found: readonly UsableKey[],
  configured: SigningAlgorithm,
): Promise<KeyRing> {
  const ring = new Map<string, OwnKey>();
  for (const each of found) {
    const { key, algorithm } = each;
    const verifier = key.type === "private" ? createPublicKey(key) : key;
    const kid = await calculateJwkThumbprint(verifier);
    const canSign = key.type !== "public" && algorithm === configured;
    const known = ring.get(kid);
    // A key in two files counts once. The file that can sign wins.
    if (known === undefined || (canSign && !known.canSign)) {
      const { file, madeAt, signsFrom, verifiesUntil } = each;
      const times = { madeAt, signsFrom, verifiesUntil };
      ring.set(kid, { kid, algorithm, key, verifier, canSign, file, ...times });
    }
  }
  return [...ring.values()].toSorted((a, b) => b.madeAt - a.madeAt);
}

/** The keys in use from `from` (inclusive) to `until` (exclusive), in milliseconds since the epoch. */
export interface KeysInForce extends SigningKeys {
  readonly from: number;
  readonly until: number;
}

/**
 * Returns the keys in use at a time. Of the keys whose time to sign has come, the newest signs. An expired key neither
 * signs nor verifies.
 */
export function keysAt(ring: KeyRing, nowMs: number): KeysInForce {
  const living = ring.filter(({ verifiesUntil }) => nowMs < verifiesUntil);
  const signer = living.find(({ canSign, signsFrom }) => canSign && signsFrom <= nowMs);
  const changes = ring.flatMap(({ signsFrom, verifiesUntil }) => [signsFrom, verifiesUntil]);
  return {
    signing: signer && { kid: signer.kid, algorithm: signer.algorithm, key: signer.key },
    verification: living.map(({ kid, algorithm, verifier, verifiesUntil }) => ({
      kid,
      algorithms: [algorithm],
      key: verifier,
      ...(verifiesUntil === Infinity ? {} : { until: verifiesUntil }),
    })),
    from: Math.max(-Infinity, ...changes.filter((change) => change <= nowMs)),
    until: Math.min(Infinity, ...changes.filter((change) => change > nowMs)),
  };
}

/**
 * `published`: will sign later. `signing`: signs new tokens. `verifying`: only verifies. `expired`: no longer verifies
 * and can be retired.
 */
export type KeyState = "published" | "signing" | "verifying" | "expired";

/** Returns the state of one key of a ring at a time. */
export function stateOf(key: OwnKey, ring: KeyRing, nowMs: number): KeyState {
  if (nowMs >= key.verifiesUntil) return "expired";
  if (keysAt(ring, nowMs).signing?.kid === key.kid) return "signing";
  return key.canSign && key.signsFrom > nowMs ? "published" : "verifying";
}

/**
 * Returns the public halves of our keys as members of a JWK Set (RFC 7517 §5): keys that sign, will sign, or have signed. Never
 * includes a secret, which could also sign. A key that signs both tokens and assertions appears once.
 */
export function publishedKeys({
  keys,
  assertionKeys,
}: Readonly<Record<"keys" | "assertionKeys", SigningKeys>>) {
  const all = [...keys.verification, ...assertionKeys.verification];
  return all
    .filter(({ kid }, index) => all.findIndex((each) => each.kid === kid) === index)
    .filter(({ key }) => key.type === "public")
    .map(({ kid, algorithms: [alg], key }) => ({
      ...key.export({ format: "jwk" }),
      kid,
      alg,
      use: "sig",
    }));
}

const derived = new WeakMap<KeyObject, Map<string, Uint8Array>>();

/**
 * Returns a key of 256 bits for another purpose, from one that signs (RFC 5869): every replica has that, and it outlives a restart.
 *
 * @param key a private key, or a secret. @param purpose is different for each use.
 */
export function derivedKey(key: KeyObject, purpose: string): Uint8Array {
  let known = derived.get(key);
  if (known === undefined) derived.set(key, (known = new Map()));
  let made = known.get(purpose);
  if (made === undefined) {
    const secret =
      key.type === "secret" ? key.export() : key.export({ type: "pkcs8", format: "der" });
    made = new Uint8Array(hkdfSync("sha256", secret, "", `sallyport ${purpose}`, 32));
    known.set(purpose, made);
  }
  return made;
}

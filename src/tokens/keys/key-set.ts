import { hash, type KeyObject } from "node:crypto";
import { type AsymmetricAlgorithm, fits, type SigningAlgorithm, weaknessOf } from "./algorithms.ts";
import { isJsonObject, jsonObjectIn } from "../../lib/text/strict-json.ts";
import { keyFromJwk } from "./key-directory.ts";

export interface JwkSet {
  readonly keys: readonly VerificationKey[];
  /** Equal for equal sets of keys. */
  readonly fingerprint: string;
  /** Why entries were ignored; never quotes the keys. */
  readonly ignored: readonly string[];
}

/** Maximum number of keys in a set; parsing an RSA key takes 0.3 ms. */
const MAX_KEYS = 100;
/** Members of a JWK that are secret (RFC 7518 §6). */
const PRIVATE_MEMBERS = ["d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"];

/**
 * Parses a JWK Set (RFC 7517 §5) of another issuer. Returns the public signature keys that work with one of the
 * algorithms. Ignores other entries, as RFC 7517 §5 recommends. Throws if the text is not a JWK Set or has more than
 * 100 keys.
 */
export function readJwkSet(text: string, algorithms: readonly AsymmetricAlgorithm[]): JwkSet {
  const entries: unknown = jsonObjectIn(text)?.["keys"];
  if (!Array.isArray(entries)) throw new Error("not a JSON Web Key Set");
  if (entries.length > MAX_KEYS) {
    throw new Error(`the key set has ${entries.length} keys, at most ${MAX_KEYS} are allowed`);
  }
  const keys: VerificationKey[] = [];
  const ignored = new Set<string>();
  for (const entry of entries) {
    const key = readEntry(entry, algorithms);
    if (typeof key === "string") ignored.add(key);
    else keys.push(key);
  }
  return { keys, fingerprint: fingerprintOf(keys), ignored: [...ignored] };
}

function readEntry(
  entry: unknown,
  algorithms: readonly AsymmetricAlgorithm[],
): VerificationKey | string {
  if (!isJsonObject(entry)) return "an entry is not an object";
  if (isSecretOrPrivate(entry)) return "a key is secret or private";
  const { use, key_ops: operations, alg, kid } = entry;
  if (use !== undefined && use !== "sig") return "a key is not for signatures";
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes("verify"))) {
    return "a key is not for signatures";
  }
  if (kid !== undefined && typeof kid !== "string") return "a kid is not a string";
  const key = publicKey(entry);
  if (key === undefined) return "a key cannot be read";
  const weakness = weaknessOf(key);
  if (weakness !== undefined) return weakness;
  const fitting = algorithms.filter(
    (name) => fits(key, name) && (alg === undefined || alg === name),
  );
  if (fitting.length === 0) return "a key is for another algorithm";
  return { kid, algorithms: fitting, key };
}

export function isSecretOrPrivate(jwk: Record<string, unknown>): boolean {
  return jwk["kty"] === "oct" || PRIVATE_MEMBERS.some((name) => name in jwk);
}

/** Returns the key of a JWK; undefined if it cannot be read. */
export function publicKey(jwk: Record<string, unknown>): KeyObject | undefined {
  try {
    return keyFromJwk(jwk);
  } catch {
    return undefined;
  }
}

function fingerprintOf(keys: readonly VerificationKey[]): string {
  const lines = keys.map(({ kid, algorithms, key }) => {
    const spki = key.export({ format: "der", type: "spki" });
    return JSON.stringify([kid, algorithms, spki.toString("base64")]);
  });
  return hash("sha256", lines.toSorted().join("\n"), "base64url");
}

/** A key that verifies signatures. The key determines the algorithms, never a token (RFC 8725 §3.1). */
export interface VerificationKey {
  readonly kid: string | undefined;
  readonly algorithms: readonly SigningAlgorithm[];
  /** A public key, or a secret. */
  readonly key: KeyObject;
  /** When it expires, in milliseconds since the epoch, whatever the tokens say; undefined if it does not expire. */
  readonly until?: number;
}

/** The keys of one issuer, which may change at run time. */
export interface KeySource {
  /** The keys known now; undefined as long as none could be loaded. */
  current(): readonly VerificationKey[] | undefined;
  /** When the keys were last read, in milliseconds since the epoch; undefined if never, or not known here. */
  readAt?(): number | undefined;
  /**
   * Fetches the keys again, unless that just happened. A failure keeps the known keys.
   * @param kid the missing key. If it was missing from a recent fetch, the set is not fetched again for it.
   */
  refresh(kid?: string): Promise<void>;
  close(): void;
}

/**
 * Selects the key that a token must be verified with. Without a `kid`, exactly one key must fit: if we tried several, a
 * client could decide how much we compute.
 */
export function selectKey(
  keys: readonly VerificationKey[],
  kid: string | undefined,
  algorithm: SigningAlgorithm,
): VerificationKey | "unknown_key" | "algorithm" {
  const named = kid === undefined ? keys : keys.filter((key) => key.kid === kid);
  if (named.length === 0) return "unknown_key";
  const [fitting, another] = named.filter((key) => key.algorithms.includes(algorithm));
  if (fitting === undefined) return "algorithm";
  return another === undefined ? fitting : "unknown_key";
}

import { hkdfSync, type KeyObject } from "node:crypto";

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

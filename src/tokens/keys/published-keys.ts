import type { VerificationKey } from "./key-set.ts";

/** A public key as others read it (RFC 7517 §4). */
export type PublishedKey = Readonly<Record<string, unknown>>;

/**
 * Returns the public halves of our keys as members of a JWK Set: keys that sign, will sign, or have signed. Never a
 * secret, which could also sign.
 */
export function publishedKeys(verification: readonly VerificationKey[]): readonly PublishedKey[] {
  return verification
    .filter(({ key }) => key.type === "public")
    .map(({ kid, algorithms: [alg], key }) => ({
      ...key.export({ format: "jwk" }),
      ...{ kid, alg, use: "sig" },
    }));
}

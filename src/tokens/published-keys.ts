import type { VerificationKey } from "./key-set.ts";

/** A public key as others read it (RFC 7517 §4). */
export type PublishedKey = Readonly<Record<string, unknown>>;

/**
 * The public halves of our keys, as a JWK Set shows them: those that sign, will sign, or did. Never a secret: who verifies
 * with one could sign with it, too.
 */
export function publishedKeys(verification: readonly VerificationKey[]): readonly PublishedKey[] {
  return verification
    .filter(({ key }) => key.type === "public")
    .map(({ kid, algorithms: [alg], key }) => ({
      ...key.export({ format: "jwk" }),
      ...{ kid, alg, use: "sig" },
    }));
}

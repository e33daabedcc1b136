import type { SigningKeys } from "./key-ring.ts";

/** A public key as a JWK (RFC 7517 §4). */
export type PublishedKey = Readonly<Record<string, unknown>>;

/** All of our own keys. */
interface PublishingKeys {
  readonly keys: SigningKeys;
  readonly assertionKeys: SigningKeys;
}

/**
 * Returns the public halves of our keys as members of a JWK Set: keys that sign, will sign, or have signed. Never
 * includes a secret, which could also sign. A key that signs both tokens and assertions appears once.
 */
export function publishedKeys({ keys, assertionKeys }: PublishingKeys): readonly PublishedKey[] {
  const all = [...keys.verification, ...assertionKeys.verification];
  return all
    .filter(({ kid }, index) => all.findIndex((each) => each.kid === kid) === index)
    .filter(({ key }) => key.type === "public")
    .map(({ kid, algorithms: [alg], key }) => ({
      ...key.export({ format: "jwk" }),
      ...{ kid, alg, use: "sig" },
    }));
}

import type { Configuration } from "../../config/schema/configuration-schema.ts";
import type { NeededClaims } from "../../core/request/token-verifier.ts";

/**
 * What a verified token has to keep of its claims, so that the configuration can be carried out. Sorted, so that two
 * configurations that need the same share the remembered tokens.
 */
export function neededClaims({ routes, identity }: Configuration): NeededClaims {
  const names = [
    ...routes.flatMap(({ require }) => require?.claims ?? []).map(({ claim }) => claim),
    ...Object.values(identity.claims),
  ];
  return {
    scopes: routes.some(({ require }) => require?.scopes !== undefined),
    names: [...new Set(names)].toSorted(),
  };
}

import type { Configuration } from "../../config/schema/configuration-schema.ts";
import { NAMED_REVOCATIONS } from "../../core/revocation.ts";
import type { NeededClaims } from "../../core/request/token-verifier.ts";
import { fieldSource } from "../../observe/log/create-access-fields.ts";
import { claimsNeededBy } from "../../policy/requirements.ts";
import { claimsIn } from "../../upstream/headers/header-template.ts";

/**
 * Returns the claims of a verified token that the configuration uses. They are sorted, so that two configurations that
 * need the same claims share the cached tokens.
 */
export function neededClaims({ routes, identity, tokens, log }: Configuration): NeededClaims {
  const required = routes.map(({ require = {} }) => claimsNeededBy(require));
  const names = [
    ...required.flatMap((needed) => needed.names),
    ...NAMED_REVOCATIONS.flatMap(({ claim }) => claim ?? []),
    ...Object.values(identity.claims),
    ...Object.values(log.fields).flatMap((written) => {
      const source = fieldSource(written);
      return source?.kind === "claim" ? [source.name] : [];
    }),
    ...(tokens.assertion?.claims.filter((name) => name !== "groups") ?? []),
    ...routes.flatMap(({ requestHeaders, responseHeaders }) =>
      [requestHeaders, responseHeaders].flatMap((changes) =>
        [changes?.set, changes?.add].flatMap((values) =>
          Object.values(values ?? {}).flatMap(claimsIn),
        ),
      ),
    ),
  ];
  return {
    scopes: required.some(({ scopes }) => scopes),
    names: [...new Set(names)].toSorted(),
  };
}

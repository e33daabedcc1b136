import type { AdminResponse, AdminPage } from "../../core/admin-page.ts";
import {
  NAMED_REVOCATIONS,
  type Revocation,
  type RevocationKindName,
} from "../../core/revocation.ts";

/** What an operator wants to revoke; the values as received. */
export interface RevocationQuery {
  /** What to revoke, by kind. */
  readonly named: ReadonlyMap<RevocationKindName, readonly string[]>;
  /** The issuer of the subject's tokens; by default every issuer. */
  readonly issuer: string | undefined;
  /** Revokes tokens issued before this time; with a subject, the default is now. */
  readonly before: string | undefined;
  /** A token, from the `Authorization` of the request. */
  readonly token: string | undefined;
}

/** The result: what was revoked, or why nothing was, because the query is invalid or the token is not accepted. */
export type RevocationResult =
  | { readonly refused: string }
  | { readonly revoked: readonly Revocation[]; readonly kept: boolean };

const PARAMETERS = new Set([...NAMED_REVOCATIONS.map(({ word }) => word), "issuer", "before"]);
const BEARER = /^Bearer +(\S+)$/i;

/**
 * `POST /-/revoke?jti=`, `?subject=&issuer=&before=`, `?before=`, or with a token in `Authorization`: revokes tokens before
 * they expire.
 */
export function revokePage(
  revoke: (query: RevocationQuery) => Promise<RevocationResult>,
): AdminPage {
  return {
    path: "/-/revoke",
    method: "POST",
    audience: "allowed",
    async answer({ query, headers }) {
      const unknown = [...query.keys()].find((name) => !PARAMETERS.has(name));
      if (unknown !== undefined) {
        return refusal(`the query may hold ${[...PARAMETERS].join(", ")} and nothing else`);
      }
      const one = (name: string): string | undefined => query.get(name) ?? undefined;
      const given = NAMED_REVOCATIONS.filter(({ word }) => query.has(word));
      const result = await revoke({
        named: new Map(given.map(({ kind, word }) => [kind, query.getAll(word)])),
        ...{ issuer: one("issuer"), before: one("before") },
        token: BEARER.exec(headers.authorization ?? "")?.[1],
      });
      return "refused" in result ? refusal(result.refused) : done(result.kept);
    },
  };
}

function done(kept: boolean): AdminResponse {
  const message = kept
    ? "Revoked"
    : "Revoked until the next start: there is no journal, or it cannot be written";
  return { status: 200, json: { message, success: true, kept } };
}

function refusal(message: string): AdminResponse {
  return { status: 400, json: { message: `Nothing was revoked: ${message}`, success: false } };
}

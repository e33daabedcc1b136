import type { AdminPage, AdminResponse } from "../../core/admin-page.ts";
import type { RevocationList } from "../../tokens/revocation/revocation-list.ts";
import {
  NAMED_REVOCATIONS,
  REVOKING_CLAIMS,
  callerIn,
  type Revocation,
  type RevocationKindName,
} from "../../core/revocation.ts";
import { failure, restrictedPage, success } from "./state-pages.ts";

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
const REVOKED_QUERY = `the query needs subject and issuer, and may hold ${["jti", "iat", ...REVOKING_CLAIMS].join(", ")}`;
const BEARER = /^Bearer +(\S+)$/i;

/**
 * `POST /-/revoke?jti=`, `?subject=&issuer=&before=`, `?before=`, or with a token in `Authorization`: revokes tokens before
 * they expire.
 */
export function revokePage(
  revoke: (query: RevocationQuery, by: string) => Promise<RevocationResult>,
): AdminPage {
  return restrictedPage("POST", "/-/revoke", async ({ query, headers, peer }) => {
    const unknown = [...query.keys()].find((name) => !PARAMETERS.has(name));
    if (unknown !== undefined) {
      return refusal(`the query may hold ${[...PARAMETERS].join(", ")} and nothing else`);
    }
    const single = ["issuer", "before"];
    if (single.some((name) => query.getAll(name).length > 1)) {
      return refusal(`${single.join(" and ")} can be named once`);
    }
    const given = NAMED_REVOCATIONS.filter(({ word }) => query.has(word));
    const named = {
      named: new Map(given.map(({ kind, word }) => [kind, query.getAll(word)])),
      issuer: query.get("issuer") ?? undefined,
      before: query.get("before") ?? undefined,
      token: BEARER.exec(headers.authorization ?? "")?.[1],
    };
    const result = await revoke(named, peer);
    if ("refused" in result) return refusal(result.refused);
    const { kept } = result;
    const message = kept
      ? "Revoked"
      : "Revoked until the next start: there is no journal, or it cannot be written";
    return success(message, { kept });
  });
}

/**
 * `GET /-/revoked?subject=&issuer=&jti=&iat=`, and the claims by which tokens can be ended: whether a token with these claims is revoked. A command that verifies a
 * token asks this, so that the token itself stays where it is.
 */
export function revokedPage(covering: RevocationList["covering"]): AdminPage {
  return restrictedPage("GET", "/-/revoked", ({ query }) => {
    const caller = callerIn(query);
    if (caller === undefined) {
      return failure(400, REVOKED_QUERY);
    }
    const by = covering(caller);
    const message = by === undefined ? "The token is not revoked" : "The token is revoked";
    return success(message, { revoked: by !== undefined, by });
  });
}

function refusal(message: string): AdminResponse {
  return failure(400, `Nothing was revoked: ${message}`);
}

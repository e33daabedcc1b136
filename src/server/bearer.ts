import { GateError } from "../core/errors.ts";
import type { GateRequest } from "../core/gate-request.ts";

const SCHEME = "bearer ";
const USUAL_SCHEME = "Bearer ";

/**
 * The bearer token of a request (RFC 6750 §2.1; the scheme in any case, RFC 9110 §11.1).
 *
 * @throws GateError `unauthenticated` when there is none, `invalid_token` when there are two or it is empty.
 */
export function bearerToken(request: GateRequest): string {
  const { authorization, authorizations } = request;
  if (authorization === undefined) throw new GateError("unauthenticated", { reason: "missing" });
  if (authorizations > 1) throw new GateError("invalid_token", { reason: "multiple" });
  const { length } = SCHEME;
  const isBearer =
    authorization.startsWith(USUAL_SCHEME) ||
    authorization.slice(0, length).toLowerCase() === SCHEME;
  if (!isBearer) {
    // `Bearer` without a token is a broken one; another scheme is none for us.
    const broken = authorization.toLowerCase() === "bearer";
    throw broken
      ? new GateError("invalid_token", { reason: "malformed" })
      : new GateError("unauthenticated", { reason: "missing" });
  }
  return authorization.slice(length).replace(/^ +/, "");
}

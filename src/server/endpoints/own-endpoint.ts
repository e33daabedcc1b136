import type { Endpoint } from "../../core/request/endpoint.ts";
import { GateError } from "../../core/request/errors.ts";
import type { Gate } from "../../core/request/gate.ts";
import { AUTHENTICATE_PATH } from "./authenticate.ts";

/** The path in another case, or with a suffix that some servers strip: a slash, an extension, a final dot, encoded blanks. */
const OTHER_SPELLING = /^\/api\/authenticate(?:\/|\.[a-z0-9]*|%20)*$/i;
const MOST_BEHIND = 16;

/**
 * Sallyport's own endpoint at a path; undefined if there is none.
 *
 * @throws GateError `no_route` for another spelling of the login path: such a request holds a name and a password, which no
 *   backend may get.
 */
export function ownEndpoint(
  { endpoints }: Pick<Gate, "endpoints">,
  matchPath: string,
): Endpoint | undefined {
  const endpoint = endpoints.get(matchPath);
  // The length rules out most paths.
  const behind = matchPath.length - AUTHENTICATE_PATH.length;
  if (endpoint !== undefined || behind < 0 || behind > MOST_BEHIND) return endpoint;
  if (OTHER_SPELLING.test(matchPath)) throw new GateError("no_route", { reason: "login_misspelt" });
  return undefined;
}

import type { Gate } from "../../core/request/gate.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Route } from "../../core/route/route.ts";
import { admitsSpelling, pathReadings } from "../../lib/http/path/loose-path.ts";
import { ambiguous } from "./request-fields.ts";

/**
 * Makes sure that the route takes a path of this spelling, and that every reading of the path leads to the same route and to
 * none of Sallyport's own endpoints. So a backend that decodes more, or cuts something off, finds what was decided about.
 *
 * @throws GateError `bad_request`.
 */
export function refuseOtherReadings(
  { findRoute, endpoints }: Pick<Gate, "findRoute" | "endpoints">,
  request: GateRequest,
  route: Route | undefined,
): void {
  if (!admitsSpelling(route?.paths ?? "strict", request.spelling)) throw ambiguous("path");
  const { host, method, rawHeaders } = request;
  for (const matchPath of [...pathReadings(request.matchPath), ...readingsBehind(route, request)]) {
    const other = findRoute({ host, method, rawHeaders, matchPath });
    if (other?.name !== route?.name || endpoints.has(matchPath)) throw ambiguous("path");
  }
}

/** A path that begins with two slashes, whatever stands for them. */
const BEGINS_WITH_TWO = /^\/(?:\/|%2F|%5C)/;

/** The readings of what the backend gets after the prefix was stripped: only there it may begin with a host. */
function readingsBehind(
  route: Route | undefined,
  { matchPath }: Pick<GateRequest, "matchPath">,
): readonly string[] {
  const { stripPrefix, addPrefix = "" } = route?.rewrite ?? {};
  if (stripPrefix === undefined || addPrefix !== "") return [];
  const rest = matchPath.startsWith(stripPrefix) ? matchPath.slice(stripPrefix.length) : "";
  if (!BEGINS_WITH_TWO.test(rest)) return [];
  return pathReadings(rest).map((reading) => `${stripPrefix}${reading}`);
}

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
  for (const matchPath of pathReadings(request.matchPath)) {
    const other = findRoute({ host, method, rawHeaders, matchPath });
    if (other?.name !== route?.name || endpoints.has(matchPath)) throw ambiguous("path");
  }
}

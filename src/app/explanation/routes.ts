import type { ExplainedRoute } from "../../core/explanation.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import { pathWords } from "../../core/route/path-pattern.ts";
import type { Route } from "../../core/route/route.ts";
import { isWeaker } from "../../policy/access-policy.ts";
import { bySpecificity, createRouteTable } from "../../policy/route-table.ts";

/** Returns all routes in matching order, each with its result. The route table itself decides what matches. */
export function explainRoutes(
  routes: readonly Route[],
  request: GateRequest | undefined,
): ExplainedRoute[] {
  let taken = false;
  return bySpecificity(routes).map((route) => {
    const fits = request !== undefined && !taken && matches(route, request);
    const misfits = request === undefined || taken || fits ? [] : mismatchesOf(route, request);
    const tried = request !== undefined && !taken;
    taken ||= fits;
    return {
      name: route.name,
      hosts: route.hosts,
      path: pathWords(route.path),
      methods: route.methods,
      result: fits ? "taken" : tried ? "does not fit" : "not tried",
      misfits,
    };
  });
}

function matches(route: Route, request: GateRequest): boolean {
  return createRouteTable([route])(request) !== undefined;
}

/** Returns notes on routes whose regular expression matches the request, although another route takes it. */
export function overlapNotes(
  routes: readonly Route[],
  request: GateRequest,
  taker: Route | undefined,
): string[] {
  if (taker === undefined) return [];
  return routes
    .filter(({ name, path }) => name !== taker.name && "regex" in path)
    .filter((route) => matches(route, request))
    .map((route) => {
      const opens = isWeaker(taker, route)
        ? `, and may admit callers whom ${route.name} refuses`
        : "";
      return `the regex of the route ${route.name} matches, too: ${taker.name} comes before it${opens}`;
    });
}

/** Returns the conditions of a route that the request does not meet, each checked separately. */
function mismatchesOf(route: Route, request: GateRequest): ExplainedRoute["misfits"] {
  const { hosts, methods, path, headers, ...rest } = route;
  const everywhere: Route = { ...rest, path: { prefix: "/" } };
  const alone = {
    host: hosts === undefined ? everywhere : { ...everywhere, hosts },
    path: { ...rest, path },
    method: methods === undefined ? everywhere : { ...everywhere, methods },
    header: headers === undefined ? everywhere : { ...everywhere, headers },
  };
  const parts = ["host", "path", "method", "header"] as const;
  return parts.filter((part) => !matches(alone[part], request));
}

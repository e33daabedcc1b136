import type { Configuration } from "../configuration.ts";
import type { Route } from "../../core/route/route.ts";
import { originOf } from "../../upstream/pool/target-origin.ts";
import { ExpressionError } from "../../lib/automaton/expression.ts";
import { placesOf } from "./upstreams-section.ts";
import { routeRow } from "./route-row.ts";
import type { PathProblem } from "../written.ts";
import { rewritePath } from "../../upstream/headers/rewrite.ts";
import { type Bypass, changesRequests, findBypasses } from "../../policy/bypasses.ts";
import { accessPolicyWords, isOpen } from "../../policy/authorize.ts";

/**
 * Reports routes whose `rewrite` or `hostHeader` gives access to something that another route of the same backend
 * refuses.
 */
export function bypassProblems({ routes, upstreams, server }: Configuration): PathProblem[] {
  const places = (upstream: string): string[] => placesOf(upstreams[upstream]?.targets ?? []);
  const sameBackend = (one: string, other: string): boolean =>
    one === other || places(one).some((place) => places(other).includes(place));
  const rewrite = (route: Route, path: string): string =>
    rewritePath(route, { path, matchPath: path });
  const names = routes.map(({ name }) => name);
  const backendHosts = ({ hostHeader, upstream }: Route, host: string): string[] => {
    if (hostHeader === undefined) return [host];
    if (hostHeader !== "target") return [nameIn(hostHeader.fixed)];
    return (upstreams[upstream]?.targets ?? []).map((target) => nameIn(originOf(target).authority));
  };
  try {
    const rows = routes.map((row) => routeRow(row, server.limits));
    const found = findBypasses(rows, { rewrite, backendHosts, sameBackend });
    return found.map((each) => problemOf(each, names));
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    const message =
      "have regular expressions too large to compare with routes that have rewrite or hostHeader";
    return [{ path: ["routes"], of: "key", message }];
  }
}

/** Returns the host of an authority, without a port. */
function nameIn(authority: string): string {
  return authority.toLowerCase().replace(/:\d+$/, "");
}

function problemOf(found: Bypass, names: readonly string[]): PathProblem {
  const { weaker, stronger } = found;
  const place = (route: Route) => ["routes", names.indexOf(route.name)];
  const [rewriting, other] = changesRequests(weaker) ? [weaker, stronger] : [stronger, weaker];
  return {
    path: [...place(rewriting), rewriting.rewrite === undefined ? "hostHeader" : "rewrite"],
    of: "key",
    message: messageOf(found),
    hint: hintOf(found),
    related: { path: place(other), message: `the route ${other.name}` },
  };
}

function messageOf({ weaker, stronger, method, ...ways }: Bypass): string {
  const isAnyHost = weaker.hosts === undefined && stronger.hosts === undefined;
  const [first, second] = [
    { route: weaker, site: isAnyHost ? "" : ways.weakerHost, path: ways.weakerPath },
    { route: stronger, site: isAnyHost ? "" : ways.strongerHost, path: ways.strongerPath },
  ].map(
    ({ route, site, path }) => `${method} ${site}${path} ${demands(route)} (route ${route.name})`,
  );
  return `creates two ways to ${ways.backendPath} of the backend: ${first}, ${second}`;
}

function demands(route: Route): string {
  if (route.auth === "none") return "is public";
  if (route.auth === "optional") return "needs no token";
  return isOpen(route) ? "refuses nobody, in monitor mode" : `needs a ${accessPolicyWords(route)}`;
}

function hintOf({ weaker, stronger, backendPath }: Bypass): string {
  if (weaker.rewrite === undefined && stronger.rewrite === undefined) {
    return "choose a host that the other route does not match, or give both routes the same requirements";
  }
  const path = backendPath.replace(/\/(?:…)?$/, "") || "/";
  return weaker.rewrite === undefined
    ? `rewrite to a path that ${weaker.name} does not match, or give both routes the same requirements`
    : `rewrite to a path that ${stronger.name} does not match, or give both routes the same requirements; ` +
        `if this is intended, add a route for ${path} that requires no more than ${weaker.name}`;
}

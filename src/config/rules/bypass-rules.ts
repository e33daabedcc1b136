import type { Route } from "../../core/route/route.ts";
import { type Bypass, findBypasses } from "../../policy/bypasses.ts";
import { accessPolicyWords, isOpen } from "../../policy/access-policy.ts";
import { rewritePath } from "../../upstream/headers/rewrite.ts";
import type { PathProblem } from "../path-problem.ts";
import { routeRow } from "../effective/route-row.ts";
import type { Configuration } from "../schema/configuration-schema.ts";
import { placesOf } from "./target-address.ts";

/** Reports routes whose `rewrite` leads to what another route of the same backend refuses. */
export function bypassProblems({ routes, upstreams }: Configuration): PathProblem[] {
  const places = (upstream: string): string[] => placesOf(upstreams[upstream]?.targets ?? []);
  const sameBackend = (one: string, other: string): boolean =>
    one === other || places(one).some((place) => places(other).includes(place));
  const rewrite = (route: Route, path: string): string =>
    rewritePath(route, { path, matchPath: path });
  const names = routes.map(({ name }) => name);
  return findBypasses(routes.map(routeRow), { rewrite, sameBackend }).map((each) =>
    problemOf(each, names),
  );
}

function problemOf(found: Bypass, names: readonly string[]): PathProblem {
  const { weaker, stronger } = found;
  const place = (route: Route) => ["routes", names.indexOf(route.name)];
  const [rewriting, other] = weaker.rewrite === undefined ? [stronger, weaker] : [weaker, stronger];
  return {
    path: [...place(rewriting), "rewrite"],
    of: "key",
    message: messageOf(found),
    hint: hintOf(found),
    related: { path: place(other), message: `the route ${other.name}` },
  };
}

function messageOf({ weaker, stronger, host, method, ...paths }: Bypass): string {
  const ways = [
    { route: weaker, path: paths.weakerPath },
    { route: stronger, path: paths.strongerPath },
  ];
  const site = weaker.hosts === undefined && stronger.hosts === undefined ? "" : host;
  const [first, second] = ways.map(
    ({ route, path }) => `${method} ${site}${path} ${demands(route)} (route ${route.name})`,
  );
  return `makes two ways to ${paths.backendPath} of the backend: ${first}, ${second}`;
}

function demands(route: Route): string {
  if (route.auth === "none") return "is public";
  if (route.auth === "optional") return "needs no token";
  return isOpen(route) ? "refuses nobody, in monitor mode" : `needs a ${accessPolicyWords(route)}`;
}

function hintOf({ weaker, stronger, backendPath }: Bypass): string {
  const path = backendPath.replace(/\/(?:…)?$/, "") || "/";
  return weaker.rewrite === undefined
    ? `rewrite to a path that ${weaker.name} does not take, or ask for the same in both`
    : `rewrite to a path that ${stronger.name} does not take, or ask for the same in both; ` +
        `if it is meant, add a route for ${path} that asks for no more than ${weaker.name}`;
}

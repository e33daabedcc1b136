import type { Route } from "../../core/route/route.ts";
import { PathExpression } from "../../core/route/path-pattern.ts";
import { TokenPlaces } from "../../core/request/token-place.ts";
import { createNetworkRule } from "../../policy/create-network-rule.ts";
import { headerModifier } from "../../upstream/headers/header-changes.ts";
import type { Configuration } from "../schema/configuration-schema.ts";

type WrittenRoute = Configuration["routes"][number];
type Limits = Pick<Configuration["server"]["limits"], "bodyBytes">;

/**
 * Converts a configured route to a `Route`, without its rate and concurrency limits, which have state.
 *
 * @param server the limits of the server: they apply where the route has none of its own.
 */
export function routeRow(row: WrittenRoute, server: Limits): Route {
  const { limits, headers, tokenFrom, allow, deny, paths, hostHeader, assertion, ...rest } = row;
  const {
    rateLimit: _rate,
    concurrency: _concurrency,
    requestHeaders,
    responseHeaders,
    ...same
  } = rest;
  const { rewrite } = same;
  const otherHost = hostHeader !== "preserve";
  const otherPath = rewrite?.stripPrefix !== undefined || rewrite?.addPrefix !== undefined;
  return {
    ...same,
    path: pathOf(row),
    bodyBytes: limits?.bodyBytes ?? server.bodyBytes,
    ...(tokenFrom && { tokenFrom: new TokenPlaces(tokenFrom) }),
    ...(otherHost && {
      hostHeader: hostHeader === "target" ? hostHeader : { fixed: hostHeader },
    }),
    ...((rewrite?.responses ?? (otherHost || otherPath)) && { mapsAnswers: true }),
    ...(requestHeaders && { requestHeaders: headerModifier(requestHeaders) }),
    ...(responseHeaders && { responseHeaders: headerModifier(responseHeaders) }),
    ...(headers && { headers: matchedHeaders(headers) }),
    ...((allow ?? deny) && { networks: createNetworkRule(row) }),
    ...(paths !== "strict" && { paths }),
    ...(assertion === true && { assertion }),
  };
}

function pathOf(row: WrittenRoute): Route["path"] {
  if ("exact" in row) return { exact: row.exact };
  return "regex" in row ? { regex: new PathExpression(row.regex) } : { prefix: row.path };
}

function matchedHeaders(written: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(written).map(([name, value]) => [name.toLowerCase(), value]);
}

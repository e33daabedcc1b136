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
 * @param limits those of the server: they apply where the route has none of its own.
 */
export function routeRow(row: WrittenRoute, limits: Limits): Route {
  const { name, hosts, methods, auth, mode, upstream, forwardAuthorization, rewrite } = row;
  return {
    ...{ name, auth, mode, upstream, forwardAuthorization },
    path: pathOf(row),
    bodyBytes: row.limits?.bodyBytes ?? limits.bodyBytes,
    ...(hosts === undefined ? {} : { hosts }),
    ...(methods === undefined ? {} : { methods }),
    ...(row.require === undefined ? {} : { require: row.require }),
    ...(row.tokenFrom === undefined ? {} : { tokenFrom: new TokenPlaces(row.tokenFrom) }),
    ...(rewrite === undefined ? {} : { rewrite }),
    ...headersOf(row),
    ...(row.headers === undefined ? {} : { headers: matchedHeaders(row.headers) }),
    ...(row.allow === undefined && row.deny === undefined
      ? {}
      : { networks: createNetworkRule(row) }),
    ...(row.paths === "strict" ? {} : { paths: row.paths }),
    ...(row.retry === undefined ? {} : { retry: row.retry }),
    ...(row.mirror === undefined ? {} : { mirror: row.mirror }),
    ...(row.timeouts === undefined ? {} : { timeouts: row.timeouts }),
    ...(row.authorize === undefined ? {} : { authorize: row.authorize }),
    ...(row.assertion === true ? { assertion: true } : {}),
  };
}

function pathOf(row: WrittenRoute): Route["path"] {
  if ("exact" in row) return { exact: row.exact };
  return "regex" in row ? { regex: new PathExpression(row.regex) } : { prefix: row.path };
}

function matchedHeaders(written: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(written).map(([name, value]) => [name.toLowerCase(), value]);
}

function headersOf({
  rewrite,
  hostHeader,
  requestHeaders,
  responseHeaders,
}: WrittenRoute): Pick<Route, "hostHeader" | "mapsAnswers" | "requestHeaders" | "responseHeaders"> {
  const otherHost = hostHeader !== "preserve";
  const otherPath = rewrite?.stripPrefix !== undefined || rewrite?.addPrefix !== undefined;
  return {
    ...(otherHost
      ? { hostHeader: hostHeader === "target" ? hostHeader : { fixed: hostHeader } }
      : {}),
    ...((rewrite?.responses ?? (otherHost || otherPath)) ? { mapsAnswers: true } : {}),
    ...(requestHeaders === undefined ? {} : { requestHeaders: headerModifier(requestHeaders) }),
    ...(responseHeaders === undefined ? {} : { responseHeaders: headerModifier(responseHeaders) }),
  };
}

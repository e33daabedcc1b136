import type { Configuration } from "../../configuration.ts";
import type { OtherTokens } from "../../../core/request/other-tokens.ts";
import { TokenPlaces } from "../../../core/request/token-place.ts";
import { PathExpression, type Route } from "../../../core/route/route.ts";
import { NetworkRule } from "../../../policy/authorize.ts";
import { HeaderModifier } from "../../../upstream/headers/header-changes.ts";

type WrittenRoute = Configuration["routes"][number];

type Limits = Pick<Configuration["server"]["limits"], "bodyBytes">;

/**
 * Converts a configured route to a `Route`, without its rate and concurrency limits, which have state. `check` prints
 * its fields in this order.
 *
 * @param limits those of the server: they apply where the route has none of its own.
 * @param session the cookie of sessions, if people sign in with browsers.
 * @param others the tokens that nobody here could accept, where requests are decided.
 */
export function routeRow(
  row: WrittenRoute,
  limits: Limits,
  session?: string,
  others?: OtherTokens,
): Route {
  const { name, hosts, methods, auth, mode, upstream, forwardAuthorization, rewrite } = row;
  const { require, tokenFrom, headers, retry, mirror, timeouts, authorize } = row;
  return {
    name,
    auth,
    mode,
    upstream,
    // Where no token is read, it belongs to the application.
    forwardAuthorization: auth === "certificate" ? "keep" : forwardAuthorization,
    path: pathOf(row),
    bodyBytes: row.limits?.bodyBytes ?? limits.bodyBytes,
    ...(hosts && { hosts }),
    ...(methods && { methods }),
    ...(require && { require }),
    ...placesOf(tokenFrom, session, others),
    ...(rewrite && { rewrite }),
    ...headersOf(row),
    ...(headers && { headers: matchedHeaders(headers) }),
    ...((row.allow ?? row.deny) && { networks: new NetworkRule(row) }),
    ...(row.paths !== "strict" && { paths: row.paths }),
    ...(retry && { retry }),
    ...(mirror && { mirror }),
    ...(timeouts && { timeouts }),
    ...(authorize !== undefined && { authorize }),
    ...(row.assertion === true && { assertion: true }),
  };
}

/** With sessions, the cookie counts wherever no places are named. */
function placesOf(
  written: WrittenRoute["tokenFrom"],
  session: string | undefined,
  others: OtherTokens | undefined,
): Pick<Route, "tokenFrom"> {
  const usual =
    session === undefined ? undefined : [{ header: "Authorization" }, { cookie: session }];
  const list = written ?? usual;
  return list === undefined ? {} : { tokenFrom: new TokenPlaces(list, session, others) };
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
    ...(otherHost && {
      hostHeader: hostHeader === "target" ? hostHeader : { fixed: hostHeader },
    }),
    ...((rewrite?.responses ?? (otherHost || otherPath)) && { mapsAnswers: true }),
    ...(requestHeaders && { requestHeaders: new HeaderModifier(requestHeaders) }),
    ...(responseHeaders && { responseHeaders: new HeaderModifier(responseHeaders) }),
  };
}

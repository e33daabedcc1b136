import type { Route } from "../../core/request/route.ts";
import type { Configuration } from "../schema/configuration-schema.ts";

/** Converts a configured route to a `Route`, without its rate limit, which has state. */
export function routeRow(row: Configuration["routes"][number]): Route {
  const { name, hosts, methods, auth, mode, upstream, forwardAuthorization, rewrite } = row;
  const bodyBytes = row.limits?.bodyBytes;
  return {
    ...{ name, auth, mode, upstream, forwardAuthorization },
    path: "exact" in row ? { exact: row.exact } : { prefix: row.path },
    ...(hosts === undefined ? {} : { hosts }),
    ...(methods === undefined ? {} : { methods }),
    ...(row.require === undefined ? {} : { require: row.require }),
    ...(rewrite === undefined ? {} : { rewrite }),
    ...(bodyBytes === undefined ? {} : { bodyBytes }),
  };
}

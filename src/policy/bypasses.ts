import type { Route } from "../core/route/route.ts";
import { METHODS } from "../lib/http/node-http.ts";
import { bySpecificity, createRouteTable, type RouteTable } from "./route-table.ts";
import { isWeaker } from "./access-policy.ts";

/**
 * A request to a backend that two routes lead to, where one route admits callers that the other refuses: a caller who
 * is refused takes the other route.
 */
export interface Bypass {
  readonly weaker: Route;
  readonly stronger: Route;
  readonly method: string;
  readonly host: string;
  /** The path that the backend receives. */
  readonly backendPath: string;
  /** The client's paths that lead to it, through the weaker and the stronger route. */
  readonly weakerPath: string;
  readonly strongerPath: string;
}

export interface BypassOptions {
  /** Returns the path that the backend receives for a path that the route matches. */
  readonly rewrite: (route: Route, path: string) => string;
  /** Reports whether two upstreams, by name, have a target in common. */
  readonly sameBackend: (one: string, other: string) => boolean;
}

/** Stands for a host that no route names (RFC 6761 §6.4). */
const ANOTHER_HOST = "another.invalid";
const ANY_SEGMENT = "…";

/**
 * Finds routes whose `rewrite` reaches what other routes protect more strongly: `/static` without its prefix is the
 * whole backend, including what `/admin` protects. Without a rewrite, two routes never lead to the same request of a
 * backend, since each request has one route.
 *
 * The search is exact: it reports a request for a pair of routes if and only if there is one. Paths are matched by
 * equality and prefix only, so a few paths at and below each prefix represent all of them.
 *
 * @returns the first bypass for each route whose rewrite causes one; the most specific routes come first.
 */
export function findBypasses(routes: readonly Route[], options: BypassOptions): Bypass[] {
  const findRoute = createRouteTable(routes);
  const ordered = [...new Set(bySpecificity(routes).map(({ name }) => name))].flatMap((name) =>
    routes.filter((route) => route.name === name),
  );
  const search = new Search(ordered, findRoute, options);
  return ordered.flatMap((route) =>
    route.rewrite === undefined ? [] : (search.first(route) ?? []),
  );
}

interface Pair {
  readonly weaker: Route;
  readonly stronger: Route;
}

class Search {
  readonly #routes: readonly Route[];
  readonly #findRoute: RouteTable;
  readonly #options: BypassOptions;
  readonly #unnamedMethod: string;

  constructor(routes: readonly Route[], findRoute: RouteTable, options: BypassOptions) {
    this.#routes = routes;
    this.#findRoute = findRoute;
    this.#options = options;
    const named = new Set(routes.flatMap(({ methods }) => methods ?? []));
    this.#unnamedMethod = METHODS.find((method) => !named.has(method)) ?? "GET";
  }

  /**
   * @param rewriting the route whose rewrite causes the bypass: the weaker one, or the stronger one if the other
   * rewrites nothing.
   */
  first(rewriting: Route): Bypass | undefined {
    for (const other of this.#routes) {
      if (other === rewriting || !this.#options.sameBackend(rewriting.upstream, other.upstream)) {
        continue;
      }
      const found =
        this.#within({ weaker: rewriting, stronger: other }) ??
        (other.rewrite === undefined
          ? this.#within({ weaker: other, stronger: rewriting })
          : undefined);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #within(pair: Pair): Bypass | undefined {
    const { weaker, stronger } = pair;
    if (!isWeaker(weaker, stronger)) return undefined;
    const paths = this.#backendPaths(pair);
    if (paths.length === 0) return undefined;
    for (const host of hostsOf(pair)) {
      for (const method of this.#methodsOf(pair)) {
        for (const backendPath of paths) {
          const weakerPath = this.#way(weaker, backendPath, host, method);
          if (weakerPath === undefined) continue;
          const strongerPath = this.#way(stronger, backendPath, host, method);
          if (strongerPath === undefined) continue;
          return { ...pair, method, host, backendPath, weakerPath, strongerPath };
        }
      }
    }
    return undefined;
  }

  /** The paths of the backend that represent all paths that both routes may lead to. */
  #backendPaths({ weaker, stronger }: Pair): string[] {
    const ways = [weaker, stronger];
    const [one = "", another = ""] = ways.map((route) => this.#imageOf(route));
    if (!isBelow(one, another) && !isBelow(another, one)) return [];
    const found = new Set<string>();
    for (const route of ways) {
      const { stripPrefix = "/" } = route.rewrite ?? {};
      for (const { path } of this.#routes) {
        const boundary = "exact" in path ? path.exact : path.prefix;
        // Outside of what this route strips, so no boundary within its paths.
        if (!isBelow(boundary, stripPrefix)) continue;
        for (const each of samplesAround(this.#options.rewrite(route, boundary))) found.add(each);
      }
    }
    return [...found].filter((path) => isBelow(path, one) && isBelow(path, another));
  }

  /** The path that everything the route forwards lies below. */
  #imageOf(route: Route): string {
    const { path } = route;
    return this.#options.rewrite(route, "exact" in path ? path.exact : path.prefix);
  }

  /** The client's path by which a route leads to a path of the backend; undefined if there is none. */
  #way(route: Route, backendPath: string, host: string, method: string): string | undefined {
    const rawHeaders = route.headers?.flat() ?? [];
    return origins(route, backendPath).find(
      (matchPath) =>
        this.#findRoute({ host, matchPath, method, rawHeaders })?.name === route.name &&
        this.#options.rewrite(route, matchPath) === backendPath,
    );
  }

  #methodsOf({ weaker, stronger }: Pair): Set<string> {
    const named = [...(weaker.methods ?? []), ...(stronger.methods ?? [])];
    return new Set(named.length > 0 ? named : ["GET", "POST", this.#unnamedMethod]);
  }
}

/** Other routes with hosts only take requests away, so hosts that no other route names suffice. */
function hostsOf({ weaker, stronger }: Pair): Set<string> {
  const named = [...(weaker.hosts ?? []), ...(stronger.hosts ?? [])];
  return new Set(
    named.length > 0 ? named.map((host) => host.replace("*", ANY_SEGMENT)) : [ANOTHER_HOST],
  );
}

/** The path, the path with a trailing slash, and a path that represents everything below. */
function samplesAround(path: string): string[] {
  const bare = path.replace(/\/$/, "");
  return [bare === "" ? "/" : bare, `${bare}/`, `${bare}/${ANY_SEGMENT}`];
}

/** Matches on segment boundaries and ignores a trailing slash. */
function isBelow(path: string, above: string): boolean {
  const bare = above.replace(/\/$/, "");
  return path === bare || path.startsWith(`${bare}/`);
}

/** The client's paths that could lead to a path of the backend. The caller checks them with the rewrite itself. */
function origins(route: Route, backendPath: string): string[] {
  const { stripPrefix = "", addPrefix = "" } = route.rewrite ?? {};
  const strip = stripPrefix.replace(/\/$/, "");
  const add = addPrefix.replace(/\/$/, "");
  if (!backendPath.startsWith(`${add}/`)) return [];
  const rest = backendPath.slice(add.length);
  return rest === "/" && strip !== "" ? [strip, `${strip}/`] : [`${strip}${rest}`];
}

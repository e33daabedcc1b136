import { beginningOf, type Route, type RouteQuery } from "../core/route/route.ts";
import { commonText } from "../lib/automaton/automaton.ts";
import { ExpressionError } from "../lib/automaton/expression.ts";
import { accessPolicyWords, isWeaker } from "./authorize.ts";
import { automatonOf, canonicalPaths, mayOverlap } from "./path-automata.ts";
import { bySpecificity, createRouteTable } from "./route-table.ts";
import { ANOTHER_HOST, type RouteWarning } from "./route-warning.ts";

/**
 * Warns about pairs of routes with at least one regular expression, if the first takes a request that the second would
 * match next, and admits callers whom the second would refuse. The search is exact: it compares all paths of the two.
 */
export function expressionWarnings(routes: readonly Route[]): RouteWarning[] {
  if (!routes.some(({ path }) => "regex" in path)) return [];
  const rows = bySpecificity(routes);
  const seen = new Set<string>();
  return rows.flatMap((taker, at) =>
    rows.slice(at + 1).flatMap((loser, distance) => {
      const pair = `${taker.name} ${loser.name}`;
      if (seen.has(pair) || !mayOpen(taker, loser)) return [];
      const others = [...rows.slice(0, at), ...rows.slice(at + 1, at + 1 + distance)];
      const found = new Overlap(taker, loser, others).find();
      if (found === undefined) return [];
      seen.add(pair);
      return [warningOf(taker, loser, found)];
    }),
  );
}

function mayOpen(taker: Route, loser: Route): boolean {
  if (taker.name === loser.name || !isWeaker(taker, loser)) return false;
  return ("regex" in taker.path || "regex" in loser.path) && mayOverlap(taker.path, loser.path);
}

function warningOf(taker: Route, loser: Route, found: string | RouteQuery): RouteWarning {
  const hint =
    "regex" in taker.path
      ? "narrow the regex, or require the same in both"
      : `the rank of a regex is the length of the prefix of all its paths, here ${beginningOf(loser.path)}: require the same in both, or begin it with ${beginningOf(taker.path)}`;
  const needs = `by the route ${taker.name}, which is ${demand(taker)}`;
  const message =
    typeof found === "string"
      ? `${found} ${needs}`
      : `${found.method} ${found.host === ANOTHER_HOST ? "" : found.host}${found.matchPath} is taken ${needs}`;
  return { route: loser.name, message, hint };
}

function demand(route: Route): string {
  const words = accessPolicyWords(route);
  return words.startsWith("public") ? words : `open to a ${words}`;
}

/** The requests that two routes match, and that no other route before the second one matches. */
class Overlap {
  readonly #taker: Route;
  readonly #loser: Route;
  readonly #others: readonly Route[];

  constructor(taker: Route, loser: Route, others: readonly Route[]) {
    this.#taker = taker;
    this.#loser = loser;
    this.#others = others;
  }

  /** Returns such a request, undefined if there is none, or a message if there may be one. */
  find(): RouteQuery | string | undefined {
    try {
      for (const asked of this.#requests()) {
        const matchPath = this.#pathFor(asked);
        if (matchPath !== undefined) return { ...asked, matchPath };
      }
      return undefined;
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      return "some path may be taken";
    }
  }

  /** Yields a request, without its path, for each combination of hosts and methods of the two routes. */
  *#requests(): Generator<RouteQuery> {
    const both = [this.#taker, this.#loser];
    const hosts = both
      .flatMap((route) => route.hosts ?? [])
      .map((host) => host.replace("*", "any"));
    const methods = new Set(both.flatMap((route) => route.methods ?? []));
    const fields = new Map(both.flatMap(({ headers = [] }) => headers));
    const rawHeaders = [...fields].flat();
    for (const host of new Set([...hosts, ANOTHER_HOST])) {
      for (const method of methods.size > 0 ? methods : ["GET"]) {
        const asked = { host, method, rawHeaders, matchPath: "/" };
        if (both.every((route) => fitsBesidesPath(route, asked))) yield asked;
      }
    }
  }

  /** Returns a path that both routes and none of the others match. */
  #pathFor(asked: RouteQuery): string | undefined {
    const canonical = canonicalPaths(this.#taker.paths ?? "strict");
    const [taker, loser] = [this.#taker.path, this.#loser.path];
    const both = [canonical, automatonOf(taker), automatonOf(loser)];
    const needed = [0, 1, 2];
    const common = commonText(both, { needed, wanted: () => true });
    if (common === undefined) return undefined;
    const others = this.#others
      .filter(({ path }) => mayOverlap(path, taker) && mayOverlap(path, loser))
      .filter((route) => fitsBesidesPath(route, asked))
      .map(({ path }) => automatonOf(path));
    if (others.every((automaton) => !automaton.matches(common))) return common;
    return commonText([...both, ...others], {
      needed,
      wanted: (matching) => !matching.includes(true, needed.length),
    });
  }
}

/** Whether a route matches a request, ignoring the path. */
export function fitsBesidesPath(route: Route, asked: RouteQuery): boolean {
  return createRouteTable([{ ...route, path: { prefix: "/" } }])(asked) !== undefined;
}

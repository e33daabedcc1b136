import type { Route, RouteQuery } from "../core/route/route.ts";
import { DEAD, START } from "../lib/automaton/automaton.ts";
import { commonText } from "../lib/automaton/common-text.ts";
import { fitsBesidesPath } from "./expression-warnings.ts";
import { automatonOf, canonicalPaths } from "./path-automata.ts";

/** A route, and the request in question without its path. */
interface Way {
  readonly route: Route;
  readonly asked: RouteQuery;
}

/**
 * Returns backend paths to which both routes may lead from different client paths: the paths that they add as a prefix,
 * and, if a regular expression is involved, a deeper one if it exists.
 *
 * @param rows all routes, in matching order.
 * @throws ExpressionError if the routes cannot be compared.
 */
export function sharedBackendPaths(rows: readonly Route[], ways: [Way, Way]): string[] {
  const ends = ways.map((way) => `${added(way)}/`);
  const deeper = deeperPath(rows, ways);
  return deeper === undefined ? ends : [...ends, deeper];
}

function deeperPath(rows: readonly Route[], ways: [Way, Way]): string | undefined {
  const [shorter, longer] = ways.toSorted((a, b) => added(a).length - added(b).length);
  if (shorter === undefined || longer === undefined) return undefined;
  if (!`${added(longer)}/`.startsWith(`${added(shorter)}/`)) return undefined;
  // A request to the route that adds less must contain what the other route adds.
  const between = added(longer).slice(added(shorter).length);
  const sides = [
    { ...shorter, before: `${stripped(shorter)}${between}` },
    { ...longer, before: stripped(longer) },
  ].map(({ route, asked, before }) => {
    const fitting = rows
      .slice(0, rows.findLastIndex(({ name }) => name === route.name) + 1)
      .filter(({ path }) => automatonOf(path).walk(START, before) !== DEAD)
      .filter((row) => fitsBesidesPath(row, asked));
    const at = fitting.findIndex(({ name }) => name === route.name);
    const tried = fitting.slice(0, at + 1);
    const hasExpression = tried.some(({ path }) => "regex" in path);
    return { automata: tried.map(({ path }) => automatonOf(path)), before, at, hasExpression };
  });
  if (!sides.some(({ hasExpression }) => hasExpression)) return undefined;
  const [one, other] = sides;
  if (one === undefined || other === undefined || one.at < 0 || other.at < 0) return undefined;
  const canonical = canonicalPaths(
    ways.some(({ route }) => route.paths === undefined) ? "strict" : "encoded",
  );
  const first = 1;
  const second = first + one.automata.length;
  const rest = commonText([canonical, ...one.automata, ...other.automata], {
    after: ["", ...sides.flatMap(({ automata, before }) => automata.map(() => before))],
    needed: [0, first + one.at, second + other.at],
    wanted: (matching) =>
      matching.indexOf(true, first) === first + one.at &&
      matching.indexOf(true, second) === second + other.at,
  });
  return rest === undefined ? undefined : `${added(longer)}${rest}`;
}

function added({ route }: Way): string {
  return (route.rewrite?.addPrefix ?? "").replace(/\/$/, "");
}

function stripped({ route }: Way): string {
  return (route.rewrite?.stripPrefix ?? "").replace(/\/$/, "");
}

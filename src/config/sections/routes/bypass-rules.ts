import type { Configuration } from "../../configuration.ts";
import { beginningOf, type Route, type RouteQuery } from "../../../core/route/route.ts";
import { originOf } from "../../../upstream/pool/target-origin.ts";
import { ExpressionError } from "../../../lib/automaton/expression.ts";
import { placesOf } from "../upstreams-section.ts";
import { routeRow } from "./route-row.ts";
import type { PathProblem } from "../../written.ts";
import { prefixesOf, rewritePath } from "../../../upstream/headers/rewrite.ts";
import { accessPolicyWords, isOpen, isWeaker } from "../../../policy/authorize.ts";
import { METHODS } from "../../../lib/http/node-http.ts";
import { bySpecificity, createRouteTable, type RouteTable } from "../../../policy/route-table.ts";
import { commonText, DEAD, START } from "../../../lib/automaton/automaton.ts";
import { fitsBesidesPath } from "../../../policy/route-warnings.ts";
import { automatonOf, canonicalPaths } from "../../../policy/path-automata.ts";

interface Pair {
  readonly weaker: Route;
  readonly stronger: Route;
}

/**
 * A request at the backend that clients can cause through two routes, one of which admits callers that the other
 * refuses. A caller who is refused can use the other route.
 */
export interface Bypass extends Pair {
  readonly method: string;
  /** The hosts that the client sends, for the weaker and the stronger route. They differ if a route changes `Host`. */
  readonly weakerHost: string;
  readonly strongerHost: string;
  /** The path that the backend receives. */
  readonly backendPath: string;
  /** The paths that the client uses for the weaker and the stronger route. */
  readonly weakerPath: string;
  readonly strongerPath: string;
}

interface BypassOptions {
  /** Returns the hosts that the backend may receive for a host that the route matches, in lower case. */
  readonly backendHosts: (route: Route, host: string) => readonly string[];
  /** Whether two upstreams, given by name, have a target in common. */
  readonly sameBackend: (one: string, other: string) => boolean;
}

/** Represents every host that no route names (RFC 6761 §6.4). */
const ANOTHER_HOST = "another.invalid";
const ANY_SEGMENT = "…";

/**
 * Finds routes whose `rewrite` or `hostHeader` reaches resources that other routes protect more strongly. For
 * example, a route `/static` that strips its prefix reaches the whole backend, including what `/admin` protects.
 * Without either, two routes never lead to the same request at a backend, since each request has one route.
 *
 * The search is exact: it finds a request for a pair of routes if and only if there is one. A few paths at and below
 * each prefix represent all others; routes with regular expressions are compared by their automata.
 *
 * @returns the first bypass for each route that causes one; the most specific routes come first.
 */
export function findBypasses(routes: readonly Route[], options: BypassOptions): Bypass[] {
  // From the order of the configuration, like the route table: equally specific routes keep it.
  const rows = bySpecificity(routes);
  const ordered = [...new Set(rows.map(({ name }) => name))].flatMap((name) =>
    routes.filter((route) => route.name === name),
  );
  const search = new Search(ordered, rows, options);
  return ordered.flatMap((route) => (changesRequests(route) ? (search.first(route) ?? []) : []));
}

/** Whether the backend may get a different path or host than the client sent. */
function changesRequests({ rewrite, hostHeader }: Route): boolean {
  return rewrite !== undefined || hostHeader !== undefined;
}

class Search {
  readonly #routes: readonly Route[];
  readonly #findRoute: RouteTable;
  readonly #options: BypassOptions;
  readonly #unnamedMethod: string;
  /** All routes in matching order, if one of them has a regular expression; else undefined. */
  readonly #rows: readonly Route[] | undefined;

  constructor(routes: readonly Route[], rows: readonly Route[], options: BypassOptions) {
    this.#routes = routes;
    this.#findRoute = createRouteTable(rows);
    this.#options = options;
    this.#rows = routes.some(({ path }) => "regex" in path) ? rows : undefined;
    const named = new Set(routes.flatMap(({ methods }) => methods ?? []));
    this.#unnamedMethod = METHODS.find((method) => !named.has(method)) ?? "GET";
  }

  /** Returns the first bypass that a route causes as the weaker one, or as the stronger if the other changes nothing. */
  first(rewriting: Route): Bypass | undefined {
    for (const other of this.#routes) {
      if (other === rewriting || !this.#options.sameBackend(rewriting.upstream, other.upstream)) {
        continue;
      }
      const found =
        this.#within({ weaker: rewriting, stronger: other }) ??
        (changesRequests(other) ? undefined : this.#within({ weaker: other, stronger: rewriting }));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #within(pair: Pair): Bypass | undefined {
    const { weaker, stronger } = pair;
    if (!isWeaker(weaker, stronger)) return undefined;
    const paths = this.#backendPaths(pair);
    if (paths.length === 0 && this.#rows === undefined) return undefined;
    for (const [weakerHost, strongerHost] of this.#hostsOf(pair)) {
      for (const method of this.#methodsOf(pair)) {
        for (const backendPath of [
          ...paths,
          ...this.#pathsOfExpressions(pair, { weakerHost, strongerHost, method }),
        ]) {
          const weakerPath = this.#way(weaker, backendPath, weakerHost, method);
          if (weakerPath === undefined) continue;
          const strongerPath = this.#way(stronger, backendPath, strongerHost, method);
          if (strongerPath === undefined) continue;
          return {
            ...pair,
            method,
            weakerHost,
            strongerHost,
            backendPath,
            weakerPath,
            strongerPath,
          };
        }
      }
    }
    return undefined;
  }

  /** Returns pairs of client hosts, for the weaker and the stronger route, that become the same host at the backend. */
  #hostsOf(pair: Pair): [string, string][] {
    const { weaker, stronger } = pair;
    const { backendHosts } = this.#options;
    const hosts = [...hostsOf(pair, backendHosts)];
    return hosts.flatMap((one) =>
      hosts
        .filter((other) => {
          const reached = backendHosts(stronger, other);
          return backendHosts(weaker, one).some((host) => reached.includes(host));
        })
        .map((other): [string, string] => [one, other]),
    );
  }

  /** Returns the backend paths that represent all paths to which both routes may lead. */
  #backendPaths({ weaker, stronger }: Pair): string[] {
    if (!this.#mayMeet(weaker, stronger)) return [];
    const images = [weaker, stronger].map((route) => this.#imageOf(route));
    const found = new Set<string>();
    for (const route of [weaker, stronger]) {
      const { stripPrefix = "/" } = route.rewrite ?? {};
      for (const each of this.#routes) {
        const boundary = boundaryOf(each);
        // This boundary lies outside of the paths from which this route strips its prefix.
        if (!isBelow(boundary, stripPrefix)) continue;
        for (const sample of samplesAround(rewritten(route, boundary))) found.add(sample);
      }
    }
    return [...found].filter((path) => images.every((image) => isBelow(path, image)));
  }

  /** Returns further backend paths, to which regular expressions lead. */
  #pathsOfExpressions(
    { weaker, stronger }: Pair,
    { weakerHost, strongerHost, method }: Pick<Bypass, "weakerHost" | "strongerHost" | "method">,
  ): string[] {
    if (this.#rows === undefined || !this.#mayMeet(weaker, stronger)) return [];
    const asked = ({ headers = [] }: Route, host: string) => ({
      host,
      method,
      matchPath: "/",
      rawHeaders: headers.flat(),
    });
    return sharedBackendPaths(this.#rows, [
      { route: weaker, asked: asked(weaker, weakerHost) },
      { route: stronger, asked: asked(stronger, strongerHost) },
    ]);
  }

  /** Whether both routes may lead to the same backend path, judging only by the beginnings of their paths. */
  #mayMeet(...routes: [Route, Route]): boolean {
    const [one = "", other = ""] = routes.map((route) => this.#imageOf(route));
    return isBelow(one, other) || isBelow(other, one);
  }

  /** Returns the backend path that contains all paths to which the route leads. */
  #imageOf(route: Route): string {
    const { stripPrefix = "" } = route.rewrite ?? {};
    const boundary = boundaryOf(route);
    return rewritten(route, boundary.startsWith(stripPrefix) ? boundary : stripPrefix);
  }

  /** Returns a client path that a route maps to a backend path; undefined if there is none. */
  #way(route: Route, backendPath: string, host: string, method: string): string | undefined {
    const rawHeaders = route.headers?.flat() ?? [];
    return origins(route, backendPath).find(
      (matchPath) =>
        this.#findRoute({ host, matchPath, method, rawHeaders })?.name === route.name &&
        rewritten(route, matchPath) === backendPath,
    );
  }

  #methodsOf({ weaker, stronger }: Pair): Set<string> {
    const named = [...(weaker.methods ?? []), ...(stronger.methods ?? [])];
    return new Set(named.length > 0 ? named : ["GET", "POST", this.#unnamedMethod]);
  }
}

/** Returns the client hosts to try. Hosts of other routes are not needed: such a route only takes requests away. */
function hostsOf(
  { weaker, stronger }: Pair,
  backendHosts: BypassOptions["backendHosts"],
): Set<string> {
  const named = [...(weaker.hosts ?? []), ...(stronger.hosts ?? [])];
  const sent = [weaker, stronger].flatMap((route) =>
    route.hostHeader === undefined ? [] : backendHosts(route, ANOTHER_HOST),
  );
  const all = named.map((host) => host.replace("*", ANY_SEGMENT));
  if (sent.length > 0 || named.length === 0) all.push(ANOTHER_HOST);
  return new Set([...all, ...sent]);
}

/** Returns the path that the backend receives for a path that the route matches. */
function rewritten(route: Route, path: string): string {
  return rewritePath(route, { path, matchPath: path });
}

/** Returns the deepest path such that all paths of a route are at or below it. */
function boundaryOf({ path }: Route): string {
  const beginning = beginningOf(path);
  return "regex" in path ? beginning.slice(0, beginning.lastIndexOf("/") + 1) : beginning;
}

/** Returns the path with and without a trailing slash, and a path that represents everything below it. */
function samplesAround(path: string): string[] {
  const bare = path.replace(/\/$/, "");
  return [bare === "" ? "/" : bare, `${bare}/`, `${bare}/${ANY_SEGMENT}`];
}

/** Whether a path is at or below another one. Compares whole segments and ignores a trailing slash of `above`. */
function isBelow(path: string, above: string): boolean {
  const bare = above.replace(/\/$/, "");
  return path === bare || path.startsWith(`${bare}/`);
}

/** Returns client paths that a route could map to a backend path. The caller must check them with the rewrite. */
function origins({ rewrite }: Route, backendPath: string): string[] {
  const { strip, add } = prefixesOf(rewrite);
  if (!backendPath.startsWith(`${add}/`)) return [];
  const rest = backendPath.slice(add.length);
  return rest === "/" && strip !== "" ? [strip, `${strip}/`] : [`${strip}${rest}`];
}

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
function sharedBackendPaths(rows: readonly Route[], ways: [Way, Way]): string[] {
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

const added = ({ route }: Way): string => prefixesOf(route.rewrite).add;

const stripped = ({ route }: Way): string => prefixesOf(route.rewrite).strip;

/**
 * Reports routes whose `rewrite` or `hostHeader` gives access to something that another route of the same backend
 * refuses.
 */
export function bypassProblems({ routes, upstreams, server }: Configuration): PathProblem[] {
  const places = (upstream: string): string[] => placesOf(upstreams[upstream]?.targets ?? []);
  const sameBackend = (one: string, other: string): boolean =>
    one === other || places(one).some((place) => places(other).includes(place));
  const names = routes.map(({ name }) => name);
  const backendHosts = ({ hostHeader, upstream }: Route, host: string): string[] => {
    if (hostHeader === undefined) return [host];
    if (hostHeader !== "target") return [nameIn(hostHeader.fixed)];
    return (upstreams[upstream]?.targets ?? []).map((target) => nameIn(originOf(target).authority));
  };
  try {
    const rows = routes.map((row) => routeRow(row, server.limits));
    const found = findBypasses(rows, { backendHosts, sameBackend });
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

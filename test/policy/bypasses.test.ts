import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PathExpression, type Route } from "../../src/core/route/route.ts";
import { type Bypass, findBypasses } from "../../src/config/sections/routes/bypass-rules.ts";
import { createRouteTable } from "../../src/policy/route-table.ts";
import { meets } from "../../src/policy/authorize.ts";
import { identityWith } from "../support/permit.ts";
import { rewritePath } from "../../src/upstream/headers/rewrite.ts";

const rewrite = (route: Route, path: string): string =>
  rewritePath(route, { path, matchPath: path });

function found(routes: readonly Route[]): Bypass[] {
  const backendHosts = ({ hostHeader }: Route, host: string): string[] =>
    hostHeader === undefined ? [host] : [hostHeader === "target" ? "t.test" : hostHeader.fixed];
  const sameBackend = (one: string, other: string): boolean => one === other;
  return findBypasses(routes, { backendHosts, sameBackend });
}

const GROUPS = ["a", "b", "c"];
/** All callers that a route can distinguish: one without a token, and a token with each set of groups. */
const CALLERS = [
  undefined,
  ...Array.from({ length: 2 ** GROUPS.length }, (_, bits) =>
    GROUPS.filter((_group, index) => (bits & (1 << index)) !== 0),
  ),
];

function passes(
  caller: readonly string[] | undefined,
  { auth, mode, require = {} }: Route,
): boolean {
  if (auth === "none" || mode === "monitor") return true;
  return caller !== undefined && meets(identityWith({ groups: caller }), require);
}

const METHODS = ["GET", "POST", "DELETE"];
const HOSTS = ["x.test", "y.test", "a.y.test", "another.test"];
const segments = ["/a", "/b", "/c"];
const PATHS = [
  "/",
  ...segments.flatMap((one) => [
    ...["", "/", "/z"].map((end) => `${one}${end}`),
    ...segments.flatMap((two) => [
      ...["", "/", "/z"].map((end) => `${one}${two}${end}`),
      ...segments.flatMap((three) => ["", "/", "/z"].map((end) => `${one}${two}${three}${end}`)),
    ]),
  ]),
];

const somePath = fc
  .array(fc.constantFrom(...segments), { maxLength: 2 })
  .map((parts) => parts.join(""));
const someGroups = fc.subarray(GROUPS, { minLength: 1 });
const someRoute = fc
  .record(
    {
      path: somePath,
      slash: fc.boolean(),
      exact: fc.boolean(),
      regex: fc.constantFrom("(/.*)?", "/[ab]", "/[ab](/.*)?", "/(a|c)/z?", "(/.)+", "/?"),
      strip: fc.nat({ max: 2 }),
      add: fc.constantFrom("", "/a", "/b", "/a/b"),
      demand: fc.constantFrom("none", "monitor", "required", "any", "all", "both"),
      any: someGroups,
      all: someGroups,
      hosts: fc.subarray(["x.test", "*.y.test", "y.test"], { minLength: 1 }),
      methods: fc.subarray(["GET", "POST"], { minLength: 1 }),
      upstream: fc.constantFrom("one", "one", "one", "two"),
    },
    {
      requiredKeys: ["path", "slash", "exact", "strip", "add", "demand", "any", "all", "upstream"],
    },
  )
  .map(
    ({
      path,
      slash,
      exact,
      regex,
      strip,
      add,
      demand,
      any,
      all,
      hosts,
      methods,
      upstream,
    }): Omit<Route, "name"> => {
      const text = path === "" || slash ? `${path}/` : path;
      const stripPrefix = path
        .split("/")
        .slice(0, strip + 1)
        .join("/");
      const groups = {
        ...(demand === "any" || demand === "both" ? { any } : {}),
        ...(demand === "all" || demand === "both" ? { all } : {}),
      };
      return {
        path:
          regex !== undefined && path !== ""
            ? { regex: new PathExpression(`${path}${regex}`) }
            : exact
              ? { exact: text }
              : { prefix: text },
        auth: demand === "none" ? "none" : "required",
        mode: demand === "monitor" ? "monitor" : "enforce",
        ...(Object.keys(groups).length > 0 ? { require: { groups } } : {}),
        ...(hosts === undefined ? {} : { hosts }),
        ...(methods === undefined ? {} : { methods }),
        ...(stripPrefix === "" && add === ""
          ? {}
          : {
              rewrite: {
                ...(stripPrefix === "" ? {} : { stripPrefix }),
                ...(add === "" ? {} : { addPrefix: add }),
              },
            }),
        upstream,
        forwardAuthorization: "strip",
        bodyBytes: Infinity,
      };
    },
  );

/** Two routes that match the same requests are a separate error. */
const sameRequests = ({ path, hosts, methods }: Omit<Route, "name">): string =>
  JSON.stringify([path, hosts, methods]);
const someRoutes = fc
  .uniqueArray(someRoute, { minLength: 2, maxLength: 5, selector: sameRequests })
  .map((routes) => routes.map((route, index): Route => ({ ...route, name: `r${index}` })));

/**
 * Searches exhaustively for two requests that reach a backend as the same request, of which a caller may send only one.
 */
function holeIn(routes: readonly Route[]): string | undefined {
  const findRoute = createRouteTable(routes);
  for (const host of HOSTS) {
    for (const method of METHODS) {
      const ways = new Map<string, Route[]>();
      for (const matchPath of PATHS) {
        const route = findRoute({ host, method, matchPath });
        if (route === undefined) continue;
        const arrived = `${route.upstream} ${rewrite(route, matchPath)}`;
        ways.set(arrived, [...(ways.get(arrived) ?? []), route]);
      }
      for (const [arrived, taken] of ways) {
        const apart = CALLERS.some(
          (caller) => new Set(taken.map((route) => passes(caller, route))).size > 1,
        );
        if (apart) {
          return `${method} ${host} ${arrived} by ${taken.map(({ name }) => name).join(", ")}`;
        }
      }
    }
  }
  return undefined;
}

it("is found past a route as specific as the stronger one, which stands behind it", () => {
  const common = { upstream: "one", forwardAuthorization: "strip", bodyBytes: Infinity } as const;
  const hosts = ["*.y.test", "y.test"];
  const bypasses = found([
    {
      ...common,
      name: "moved",
      auth: "none",
      hosts,
      rewrite: { addPrefix: "/b" },
      path: { regex: new PathExpression("/a(/.*)?") },
    },
    {
      ...common,
      name: "protected",
      auth: "required",
      require: { groups: { any: ["a"] } },
      path: { prefix: "/" },
      hosts: ["*.y.test"],
    },
    { ...common, name: "open", auth: "none", path: { prefix: "/" }, hosts },
  ]);
  expect(bypasses.map(({ weaker, stronger }) => [weaker.name, stronger.name])).toEqual([
    ["moved", "protected"],
  ]);
});

describe("any table of routes", () => {
  it("is refused if one route forwards a request that another route refuses", () => {
    fc.assert(
      fc.property(someRoutes, (routes) => {
        const hole = holeIn(routes);
        fc.pre(hole !== undefined);
        expect(found(routes), hole).not.toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  it("is not refused otherwise: each finding is two requests that arrive as the same one", () => {
    fc.assert(
      fc.property(someRoutes, (routes) => {
        const findRoute = createRouteTable(routes);
        for (const { weaker, stronger, method, ...paths } of found(routes)) {
          expect(paths.weakerHost).toBe(paths.strongerHost);
          for (const [route, matchPath, host] of [
            [weaker, paths.weakerPath, paths.weakerHost],
            [stronger, paths.strongerPath, paths.strongerHost],
          ] as const) {
            expect(findRoute({ host, method, matchPath })?.name).toBe(route.name);
            expect(rewrite(route, matchPath)).toBe(paths.backendPath);
          }
          expect(weaker.upstream).toBe(stronger.upstream);
          expect(
            CALLERS.some((caller) => passes(caller, weaker) && !passes(caller, stronger)),
          ).toBe(true);
        }
      }),
      { numRuns: 200 },
    );
  });

  it.each([
    ["prefixes", (index: number) => ({ prefix: `/${index}` })],
    ["expressions", (index: number) => ({ regex: new PathExpression(`/${index}(/[a-z]+)*`) })],
  ])("is checked in less than a second, with 500 %s of one backend", (_, pathOf) => {
    const routes = Array.from({ length: 500 }, (_each, index): Route => ({
      name: `r${index}`,
      path: pathOf(index),
      auth: index % 2 === 0 ? "none" : "required",
      upstream: "app",
      forwardAuthorization: "strip",
      bodyBytes: Infinity,
      rewrite: { stripPrefix: `/${index}`, addPrefix: `/b${index}` },
    }));
    const before = process.cpuUsage();
    expect(found(routes)).toEqual([]);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1e6).toBeLessThan(1);
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { beginningOf, type Route } from "../../src/core/route/route.ts";
import { bySpecificity, createRouteTable } from "../../src/policy/route-table.ts";
import { routeWith } from "../support/permit.ts";

interface Asked {
  readonly host: string;
  readonly matchPath: string;
  readonly method: string;
}

/** Returns the name of the route that matches a request. */
function found(routes: readonly Route[], asked: Partial<Asked>): string | undefined {
  const request = { host: "api.example.com", matchPath: "/", method: "GET", ...asked };
  return createRouteTable(routes)(request)?.name;
}

describe("a prefix", () => {
  test.each([
    ["/docs", "/docs", true],
    ["/docs", "/docs/", true],
    ["/docs", "/docs/a/b", true],
    ["/docs", "/docsx", false],
    ["/docs", "/docs.html", false],
    ["/docs", "/doc", false],
    ["/docs", "/Docs", false],
    ["/docs", "/a/docs", false],
    ["/docs/", "/docs/", true],
    ["/docs/", "/docs/a", true],
    ["/docs/", "/docs", false],
    ["/docs/", "/docsx/", false],
    ["/a/b", "/a/b/c", true],
    ["/a/b", "/a/bc", false],
    ["/", "/", true],
    ["/", "/whatever", true],
  ])("%s matches %s: %s", (prefix, matchPath, taken) => {
    const name = found([routeWith({ name: "it", path: { prefix } })], { matchPath });
    expect(name).toBe(taken ? "it" : undefined);
  });
});

test.each([
  ["/docs", true],
  ["/docs/", false],
  ["/docs/a", false],
  ["/docsx", false],
])("an exact path matches %s: %s", (matchPath, taken) => {
  const name = found([routeWith({ name: "it", path: { exact: "/docs" } })], { matchPath });
  expect(name).toBe(taken ? "it" : undefined);
});

describe("hosts", () => {
  test.each([
    ["api.example.com", "api.example.com", true],
    ["api.example.com", "www.example.com", false],
    ["api.example.com", "api.example.com.evil.test", false],
    ["*.example.com", "api.example.com", true],
    ["*.example.com", "a.b.example.com", false],
    ["*.example.com", "example.com", false],
    ["*.example.com", ".example.com", false],
    ["*.example.com", "evilexample.com", false],
    ["*.example.com", "api.example.org", false],
    ["*.example.com", "", false],
    ["*.com", "example.com", true],
  ])("%s matches %s: %s", (pattern, host, taken) => {
    const name = found([routeWith({ name: "it", hosts: [pattern] })], { host });
    expect(name).toBe(taken ? "it" : undefined);
  });

  test("several of a route are alternatives", () => {
    const routes = [routeWith({ name: "it", hosts: ["a.test", "*.b.test"] })];
    const hosts = ["a.test", "x.b.test", "b.test", "x.a.test"];
    expect(hosts.map((host) => found(routes, { host }))).toEqual([
      "it",
      "it",
      undefined,
      undefined,
    ]);
  });

  test("none means every host, and also requests without one", () => {
    expect(["x.test", ""].map((host) => found([routeWith({ name: "it" })], { host }))).toEqual([
      ...["it", "it"],
    ]);
  });
});

test("methods are case-sensitive; routes without the method are skipped", () => {
  const routes = [routeWith({ name: "read", methods: ["GET", "HEAD"] })];
  const methods = ["GET", "HEAD", "POST", "get"];
  expect(methods.map((method) => found(routes, { method }))).toEqual([
    ...["read", "read", undefined, undefined],
  ]);
});

describe("the most specific route wins", () => {
  const inOrder: readonly Route[] = [
    routeWith({ name: "exact host, long", hosts: ["api.example.com"], path: { prefix: "/a/b" } }),
    routeWith({ name: "exact host, short", hosts: ["api.example.com"] }),
    routeWith({ name: "wildcard, exact", hosts: ["*.example.com"], path: { exact: "/a/b/c/d" } }),
    routeWith({ name: "wildcard, short", hosts: ["*.example.com"], path: { prefix: "/a" } }),
    routeWith({ name: "exact", path: { exact: "/a/b/c" } }),
    routeWith({ name: "as long", path: { prefix: "/a/b/c" }, methods: ["GET"] }),
    routeWith({ name: "as long, any method", path: { prefix: "/a/b/c" } }),
    routeWith({ name: "with slash", path: { prefix: "/a/b/" } }),
    routeWith({ name: "without slash", path: { prefix: "/a/b" } }),
    routeWith({ name: "any", path: { prefix: "/" } }),
  ];

  test("in any order of the configuration", () => {
    const names = inOrder.map(({ name }) => name);
    const shuffled = fc.shuffledSubarray([...inOrder], { minLength: inOrder.length });
    fc.assert(
      fc.property(shuffled, (routes) => {
        expect(bySpecificity(routes).map(({ name }) => name)).toEqual(names);
      }),
    );
  });

  test.each([
    [{ host: "api.example.com", matchPath: "/a/b/c" }, "exact host, long"],
    [{ host: "api.example.com", matchPath: "/a/b/c/d" }, "exact host, long"],
    [{ host: "api.example.com", matchPath: "/x" }, "exact host, short"],
    [{ host: "www.example.com", matchPath: "/a/b/c/d" }, "wildcard, exact"],
    [{ host: "www.example.com", matchPath: "/a/b/c" }, "wildcard, short"],
    [{ host: "www.example.com", matchPath: "/x" }, "any"],
    [{ host: "other.test", matchPath: "/a/b/c" }, "exact"],
    [{ host: "other.test", matchPath: "/a/b/c/d" }, "as long"],
    [{ host: "other.test", matchPath: "/a/b/c/d", method: "PUT" }, "as long, any method"],
    [{ host: "other.test", matchPath: "/a/b/d" }, "with slash"],
    [{ host: "other.test", matchPath: "/a/b" }, "without slash"],
    [{ host: "other.test", matchPath: "/a" }, "any"],
  ])("%j", (asked, name) => {
    expect(found(inOrder.toReversed(), asked)).toBe(name);
  });

  test("an exact host beats a wildcard, even if its route also names a wildcard", () => {
    const routes = [
      routeWith({ name: "wildcard", hosts: ["*.example.com"], path: { prefix: "/" } }),
      routeWith({ name: "both kinds", hosts: ["api.example.com", "*.example.org"] }),
    ];
    for (const order of [routes, routes.toReversed()]) {
      expect(found(order, { host: "api.example.com" })).toBe("both kinds");
      expect(found(order, { host: "www.example.com" })).toBe("wildcard");
    }
  });

  test("the routes keep their order", () => {
    const routes = inOrder.toReversed();
    const before = [...routes];
    createRouteTable(routes);
    expect(routes).toEqual(before);
  });
});

/**
 * Returns how specific a matching route is, by definition: host, then length of the path, then exactness, then method.
 */
function fitness(route: Route, { host, matchPath, method }: Asked): number[] | undefined {
  const text = beginningOf(route.path);
  const segments = (path: string): string[] => path.split("/").slice(1);
  const wanted = segments(text);
  const inside =
    text.endsWith("/") || segments(matchPath).length >= wanted.length
      ? text.endsWith("/")
        ? matchPath.startsWith(text)
        : wanted.every((segment, i) => segments(matchPath)[i] === segment)
      : false;
  if (!("exact" in route.path ? matchPath === text : inside)) return undefined;
  if (route.methods !== undefined && !route.methods.includes(method)) return undefined;
  const hosts = (route.hosts ?? []).map((pattern) => {
    if (!pattern.startsWith("*.")) return pattern === host ? 2 : 0;
    const [, ...rest] = host.split(".");
    return `*.${rest.join(".")}` === pattern ? 1 : 0;
  });
  if (route.hosts !== undefined && Math.max(...hosts) === 0) return undefined;
  return [
    Math.max(0, ...hosts),
    text.length,
    Number("exact" in route.path),
    Number(route.methods !== undefined),
  ];
}

function better(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((part, i) => part !== b[i]);
  return at !== -1 && (a[at] ?? 0) > (b[at] ?? 0);
}

const paths = ["/", "/a", "/a/", "/a/b", "/a/b/", "/ab", "/b"];
const hostNames = ["a.test", "b.test", "x.a.test"];
const route = fc.record(
  {
    path: fc.tuple(fc.constantFrom(...paths), fc.boolean()),
    hosts: fc.constantFrom(["a.test"], ["b.test", "x.a.test"], ["*.test"], ["*.a.test"]),
    methods: fc.constantFrom(["GET"], ["PUT", "GET"]),
  },
  { requiredKeys: ["path"] },
);
const table = fc.array(route, { maxLength: 12 }).map((rows) =>
  rows.map(({ path: [text, exact], hosts, methods }, i) =>
    routeWith({
      name: `r${i}`,
      path: exact ? { exact: text } : { prefix: text },
      ...(hosts === undefined ? {} : { hosts }),
      ...(methods === undefined ? {} : { methods }),
    }),
  ),
);
const asked = fc.record({
  host: fc.constantFrom(...hostNames, "test", "x.x.a.test", "other"),
  matchPath: fc.constantFrom(...paths, "/a/b/c", "/a/bc", "/c"),
  method: fc.constantFrom("GET", "PUT", "POST"),
});

test("every request gets the route that a linear scan by the definition finds", () => {
  fc.assert(
    fc.property(table, asked, (routes, request) => {
      let best: { route: Route; fits: readonly number[] } | undefined;
      for (const each of routes) {
        const fits = fitness(each, request);
        if (fits !== undefined && (best === undefined || better(fits, best.fits))) {
          best = { route: each, fits };
        }
      }
      expect(createRouteTable(routes)(request)?.name).toBe(best?.route.name);
    }),
    { numRuns: 2000 },
  );
});

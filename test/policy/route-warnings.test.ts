import { describe, expect, it } from "vitest";
import type { Route } from "../../src/core/route/route.ts";
import { issuerWarning, routeWarnings } from "../../src/policy/route-warnings.ts";

const open: Route = {
  name: "open",
  path: { prefix: "/" },
  auth: "none",
  upstream: "app",
  forwardAuthorization: "strip",
  bodyBytes: Infinity,
};

function guarded(more: Partial<Route>): Route {
  return { ...open, name: "guarded", auth: "required", ...more };
}

function found(...routes: Route[]): string[] {
  return routeWarnings(routes).map(({ route, message }) => `${route}: ${message}`);
}

describe("a protected route next to a public one", () => {
  it("leaves the path without its trailing slash public", () => {
    expect(found(open, guarded({ path: { prefix: "/1/" } }))).toEqual([
      "guarded: /1 is public through the route open",
    ]);
    expect(found(open, guarded({ path: { prefix: "/1" } }))).toEqual([]);
  });

  it("leaves everything below an exact path public", () => {
    expect(found(open, guarded({ path: { exact: "/1" } }))).toEqual([
      "guarded: /1/ is public through the route open",
    ]);
  });

  it("leaves methods public that it does not name, especially HEAD", () => {
    expect(found(open, guarded({ path: { prefix: "/1" }, methods: ["GET"] }))).toEqual([
      "guarded: HEAD, POST, PUT, PATCH, DELETE, OPTIONS of /1 is public through the route open",
    ]);
    const reads: Route = { ...open, methods: ["GET", "HEAD"] };
    expect(found(reads, guarded({ path: { prefix: "/1" }, methods: ["GET"] }))).toEqual([
      "guarded: HEAD of /1 is public through the route open",
    ]);
  });

  it("leaves the path in another case public", () => {
    expect(found(open, guarded({ path: { prefix: "/a" } }))).toEqual([
      "guarded: /A is public through the route open",
    ]);
    expect(found(open, guarded({ path: { prefix: "/A" } }))).toEqual([
      "guarded: /a is public through the route open",
    ]);
  });

  it("leaves the path public under other hosts", () => {
    expect(found(open, guarded({ path: { prefix: "/1" }, hosts: ["*.example.com"] }))).toEqual([
      "guarded: /1 is public through the route open under any other host",
    ]);
  });
});

it("warns about a route by headers that is stricter than the one behind it", () => {
  const rest = guarded({ name: "rest", path: { prefix: "/" } });
  const stricter = { require: { groups: { any: ["admins"] } } };
  const byHeader = guarded({ path: { prefix: "/1" }, headers: [["x-admin", "true"]], ...stricter });
  expect(found(rest, byHeader)).toEqual([
    "guarded: /1 without the header x-admin needs less, by the route rest",
  ]);
  expect(found({ ...rest, ...stricter }, byHeader)).toEqual([]);
  expect(found(rest, { ...byHeader, require: {} })).toEqual([]);
  expect(found(byHeader)).toEqual([]);
  expect(found({ ...rest, upstream: "other" }, byHeader)).toEqual([]);
});

it("treats a route in monitor mode as open, but not next to another such route", () => {
  const watched = guarded({ name: "watched", path: { prefix: "/" }, mode: "monitor" });
  const route = guarded({ path: { prefix: "/1/" }, methods: ["GET"] });
  const open = "is open through the route watched, in monitor mode";
  expect(found(watched, route)).toEqual([
    `guarded: /1 ${open}`,
    `guarded: HEAD, POST, PUT, PATCH, DELETE, OPTIONS of /1/ ${open}`,
  ]);
  expect(found(watched, { ...route, mode: "monitor" })).toEqual([]);
});

it("causes no warning if the rest is protected, too", () => {
  const rest = guarded({ name: "rest", path: { prefix: "/" } });
  const below: Route = { ...open, path: { prefix: "/public/" } };
  const paths = [{ prefix: "/a/" }, { exact: "/B" }];
  const routes = paths.map((path, i) => guarded({ name: `r${i}`, path, methods: ["GET"] }));
  expect(found(rest, below, ...routes)).toEqual([]);
});

describe("callers of several issuers", () => {
  it("look the same to a backend that does not learn the issuer", () => {
    const { message } = issuerWarning(["sallyport", "https://id.example.com"], undefined) ?? {};
    expect(message).toBe(
      "the backend does not learn the issuer: it cannot distinguish equal names from sallyport and https://id.example.com",
    );
  });

  it("are distinguished by a header; with one issuer there is no warning", () => {
    expect(issuerWarning(["a", "b"], "X-Auth-Issuer")).toBeUndefined();
    expect(issuerWarning(["a"], undefined)).toBeUndefined();
    expect(issuerWarning([], undefined)).toBeUndefined();
  });
});

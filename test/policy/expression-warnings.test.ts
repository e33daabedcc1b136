import { expect, it } from "vitest";
import { PathExpression, type Route } from "../../src/core/route/route.ts";
import { expressionWarnings } from "../../src/policy/route-warnings.ts";

const base = { upstream: "app", forwardAuthorization: "strip", bodyBytes: Infinity } as const;
const open = (name: string, path: Route["path"], more: Partial<Route> = {}): Route => ({
  ...base,
  name,
  path,
  auth: "none",
  ...more,
});
const guarded = (name: string, path: Route["path"], more: Partial<Route> = {}): Route => ({
  ...base,
  name,
  path,
  auth: "required",
  ...more,
});
const regex = (text: string): Route["path"] => ({ regex: new PathExpression(text) });
const found = (...routes: Route[]): string[] =>
  expressionWarnings(routes).map(({ route, message }) => `${route}: ${message}`);

it("warns of an expression that makes a path public that the next route would protect", () => {
  const routes = [
    open("avatar", regex("/users/[0-9]+/avatar")),
    guarded("users", { prefix: "/users" }),
    guarded("rest", { prefix: "/" }),
  ];
  expect(found(...routes)).toEqual([
    "users: GET /users/0/avatar is taken by the route avatar, which is public",
  ]);
});

it("warns of a longer prefix that makes a path public that an expression would protect", () => {
  const routes = [open("shop", { prefix: "/shop" }), guarded("admin", regex("/[^/]+/admin"))];
  expect(found(...routes)).toEqual([
    "admin: GET /shop/admin is taken by the route shop, which is public",
  ]);
});

it("warns of two expressions", () => {
  const routes = [open("files", regex("/.*\\.css")), guarded("admin", regex("/[a-z]+/admin/.*"))];
  expect(found(...routes)).toEqual([
    "admin: GET /a/admin/.css is taken by the route files, which is public",
  ]);
});

it("considers hosts, methods and headers, and routes that come before both", () => {
  const users = { prefix: "/users" };
  const avatar = regex("/users/[0-9]+");
  const at = (host: string): Partial<Route> => ({ hosts: [host] });
  expect(found(open("a", avatar, at("a.test")), guarded("u", users, at("b.test")))).toEqual([]);
  expect(found(open("a", avatar, at("a.test")), guarded("u", users))).toEqual([
    "u: GET a.test/users/0 is taken by the route a, which is public",
  ]);
  const gets = { methods: ["GET"] };
  const posts = { methods: ["POST"] };
  expect(found(open("a", avatar, gets), guarded("u", users, posts))).toEqual([]);
  expect(found(open("a", avatar, posts), guarded("u", users))).toHaveLength(1);
  expect(found(open("a", avatar, { headers: [["x-a", "1"]] }), guarded("u", users))).toHaveLength(
    1,
  );
  const first = guarded("first", regex("/users/[0-9]+"), { headers: [] });
  expect(found(first, open("a", regex("/users/[0-5]")), guarded("u", users))).toEqual([]);
});

it("does not warn if no caller gains access", () => {
  expect(found(guarded("a", regex("/users/.*")), guarded("u", { prefix: "/users" }))).toEqual([]);
  expect(found(open("a", regex("/img/.*")), guarded("u", { prefix: "/users" }))).toEqual([]);
  expect(found(open("a", { prefix: "/users/a" }), guarded("u", { prefix: "/users" }))).toEqual([]);
});

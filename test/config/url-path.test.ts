import { describe, expect, it } from "vitest";
import { load, problemsOf, SMALLEST } from "./configuration-file.ts";

const route = (field: string): string =>
  `${SMALLEST}routes: [{ name: r, upstream: app, auth: none, ${field} }, { name: rest, upstream: app }]\n`;

describe("a path that looks like a pattern is refused, with advice", () => {
  it.each([
    ["path", "/admin/*", "a path is a prefix already: write /admin/"],
    ["path", "/api/**", "a path is a prefix already: write /api/"],
    ["path", "/*", "a path is a prefix already: write /"],
    ["path", "/admin*", "a path is a prefix already: write /"],
    ["path", "/*/admin", "a path is a prefix already: write /"],
    ["path", "/users/:id", "a path is a prefix already: write /users/"],
    ["path", "/users/:id/orders", "a path is a prefix already: write /users/"],
    ["path", "/users/{id}", "a path is a prefix already: write /users/"],
    ["path", "/users/[id]", "a path is a prefix already: write /users/"],
    ["path", "/api/.*", "a path is a prefix already: write /api/"],
    ["path", "/api/.+", "a path is a prefix already: write /api/"],
    ["path", "/api(/.*)?", "a path is a prefix already: write /"],
    ["path", "/(a|b)", "a path is a prefix already: write /"],
    ["path", "/api/\\d", "a path is a prefix already: write /api/"],
    ["path", "/a?b", "a path is a prefix already: write /"],
    ["path", "/api$", "for this one path write exact: /api"],
    ["path", "^/api", "a path is a prefix already: write /api"],
    ["path", "^/api$", "for this one path write exact: /api"],
    ["path", "~ ^/api", "a path is a prefix already: write /api"],
    ["path", "= /api", "a path is a prefix already: write /api"],
    ["exact", "/api/*", "exact takes one path; for all below it write path: /api/"],
    ["exact", "/users/:id", "exact takes one path; for all below it write path: /users/"],
    ["exact", "/api$", "for this one path write exact: /api"],
  ])("%s: %s", async (key, path, advice) => {
    const problems = await problemsOf(route(`${key}: '${path}'`));
    expect(problems.map(({ line, message }) => [line, message.split(" ")[0]])).toEqual([
      [3, `routes[0].${key}`],
    ]);
    expect(problems[0]?.hint).toMatch(
      new RegExp(`^${advice.replaceAll(/[$/().*+?]/g, String.raw`\$&`)}(?:;|$)`),
    );
  });

  it("also in a rewrite and in a probe", async () => {
    const rewrite = route("path: /api, rewrite: { stripPrefix: /api/* }");
    const problems = await problemsOf(rewrite);
    expect(problems[0]?.hint).toMatch(/^write \/api;/);
    const probe = `${SMALLEST}admin: { probes: [{ path: /health/*, upstream: app }] }\n`;
    expect(await problemsOf(probe)).toHaveLength(1);
  });
});

describe("a path that only vaguely resembles a pattern is accepted", () => {
  it.each([
    "/v1/x:cancel",
    "/$metadata",
    "/Products(1)",
    "/c++",
    "/a.b",
    "/@me",
    "/a,b=c",
    "/it's",
  ])("%s", async (path) => {
    const { configuration } = await load(route(`path: "${path}"`));
    expect(configuration.routes[0]).toMatchObject({ path });
  });

  it.each([
    ["/files/%2A", "/files/*"],
    ["/%3Aid", "/:id"],
    ["/%3aid", "/:id"],
    ["/api%24", "/api$"],
  ])("%s means %s", async (written, path) => {
    const { configuration } = await load(route(`path: "${written}"`));
    expect(configuration.routes[0]).toMatchObject({ path });
  });

  it("two spellings of a path are the same path", async () => {
    const text = `${SMALLEST}routes:
  - { name: a, path: "/v1/x%3Acancel", upstream: app, rewrite: { stripPrefix: "/v1/x:cancel" } }
  - { name: b, path: "/v1/x:cancel", upstream: app }
`;
    const problems = await problemsOf(text);
    expect(problems.map(({ line, message }) => [line, message.split(" ")[0]])).toEqual([
      [5, "routes[1]"],
    ]);
  });
});

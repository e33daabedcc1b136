import { describe, expect, it } from "vitest";
import { load, problemsOf, SMALLEST } from "./configuration-file.ts";

const routes = (field: string): string =>
  `${SMALLEST}routes: [{ name: r, upstream: app, ${field} }, { name: rest, upstream: app }]\n`;

async function words(field: string): Promise<string[]> {
  return (await problemsOf(routes(field))).map(({ message }) => message);
}

const NO_PATH =
  "routes[0].regex matches no path: check it for a blank, a query, lower case after %, or something that paths: strict refuses";

describe("a regular expression for paths", () => {
  it.each([
    ["regex: '/users/[0-9]+/orders'"],
    ["regex: '/api(/v[12])?(/.*)?', rewrite: { stripPrefix: /api }"],
    ["regex: '/a/[^/]+%2F.*', paths: encoded"],
    ["regex: '/a//b;.*', paths: asSent"],
  ])("%s is accepted", async (field) => {
    expect((await load(routes(field))).configuration.routes[0]).toHaveProperty("regex");
  });

  it.each([
    ["regex: '/^a'", "routes[0].regex has a ^, at character 2"],
    ["regex: '/(a'", "routes[0].regex has an unclosed (, at character 2"],
    ["regex: 'users'", "routes[0].regex must begin with a literal slash"],
    ["regex: '.*/users'", "routes[0].regex must begin with a literal slash"],
    ["regex: '/(a|b)*a(a|b){12}'", "routes[0].regex needs too large a table"],
    ["regex: '/a/[^/]+%2F.*'", NO_PATH],
    ["regex: '/a/%2f', paths: encoded", NO_PATH],
    ["regex: '/a//b'", NO_PATH],
    ["regex: '/a/\\?x'", NO_PATH],
    ["regex: /a, path: /a", "routes[0].regex and path exclude each other"],
    ["regex: /a, exact: /a", "routes[0].regex and exact exclude each other"],
    [
      "regex: '/api[0-9]*/x', rewrite: { stripPrefix: /api }",
      "routes[0].rewrite.stripPrefix must be the beginning of the route's path, up to a slash or its end",
    ],
  ])("%s is refused", async (field, message) => {
    expect(await words(field)).toEqual([message]);
  });

  it("that a rewrite bypasses is an error, as for a prefix", async () => {
    const text = `${SMALLEST}routes:
  - { name: open, path: /static, auth: none, upstream: app, rewrite: { stripPrefix: /static } }
  - { name: orders, regex: '/users/[0-9]+/orders', upstream: app }
`;
    const [problem, ...more] = await problemsOf(text);
    expect(more).toEqual([]);
    expect(problem?.message).toContain("creates two ways to /users/0/orders of the backend");
  });
});

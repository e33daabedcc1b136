import { describe, expect, it } from "vitest";
import { problemsOf } from "./configuration-file.ts";

const UPSTREAMS = `server: { tls: off }
upstreams:
  app: { targets: ["http://127.0.0.1:8080"] }
  same: { targets: ["http://10.0.0.9:8080", "http://localhost:8080"] }
  web: { targets: ["http://127.0.0.1:3000"] }
routes:
`;

/** Returns the line of each reported route and that of the route it bypasses: `8>9`. */
async function overreaches(...routes: string[]): Promise<string[]> {
  const text = UPSTREAMS + routes.map((route) => `  - { ${route} }\n`).join("");
  const problems = await problemsOf(text);
  return problems.map(({ line, related }) => {
    // The first route is on line 7.
    return `${(line ?? 0) - 7}>${(related?.line ?? 0) - 7}`;
  });
}

const ASSETS =
  "name: assets, path: /static, auth: none, upstream: app, rewrite: { stripPrefix: /static }";
const ADMINS = "require: { groups: { any: [admins] } }";
const ADMIN = `name: admin, path: /admin, ${ADMINS}, upstream: app`;
const REST = "name: rest, path: /, upstream: app";
const STRIP = "rewrite: { stripPrefix: /api }";

describe("a route whose rewrite bypasses another route is refused", () => {
  it.each([
    ["a public route next to protected ones", [ASSETS, ADMIN, REST], ["0>1"]],
    ["a public route next to a catch-all", [ASSETS, REST], ["0>1"]],
    ["in monitor mode", [ASSETS.replace("auth: none", "mode: monitor"), REST], ["0>1"]],
    [
      "with a token, to a path that requires a group",
      [ASSETS.replace("auth: none, ", ""), ADMIN],
      ["0>1"],
    ],
    [
      "with one group, to a path that requires another",
      [ASSETS.replace("auth: none", "require: { groups: { any: [sales] } }"), ADMIN],
      ["0>1"],
    ],
    [
      "with one of two groups, to a path that requires both",
      [
        ASSETS.replace("auth: none", "require: { groups: { any: [admins, sales] } }"),
        ADMIN.replace("any: [admins]", "all: [admins, sales]"),
      ],
      ["0>1"],
    ],
    [
      "a public host that becomes a protected one by a fixed hostHeader",
      [
        "name: open, hosts: [open.test], path: /, auth: none, upstream: app, hostHeader: admin.test",
        "name: admin, hosts: [admin.test], path: /, upstream: app",
      ],
      ["0>1"],
    ],
    [
      "two hosts that are both replaced by the target's",
      [
        "name: open, hosts: [open.test], path: /, auth: none, upstream: app, hostHeader: target",
        "name: admin, hosts: [admin.test], path: /, upstream: app, hostHeader: target",
      ],
      ["0>1"],
    ],
    [
      "a protected host that becomes a public one",
      [
        "name: open, hosts: [open.test], path: /, auth: none, upstream: app",
        "name: admin, hosts: [admin.test], path: /, upstream: app, hostHeader: open.test",
      ],
      ["1>0"],
    ],
    ["one exact path", [ASSETS, ADMIN.replace("path: /admin", "exact: /admin/key")], ["0>1"]],
    [
      "one exact path to another",
      [
        "name: key, exact: /pub/key, auth: none, upstream: app, rewrite: { stripPrefix: /pub }",
        ADMIN.replace("path: /admin", "exact: /key"),
      ],
      ["0>1"],
    ],
    [
      "by addPrefix",
      ["name: pub, path: /pub, auth: none, upstream: app, rewrite: { addPrefix: /admin }", ADMIN],
      ["0>1"],
    ],
    [
      "to a path that another route reaches through its own rewrite",
      [
        "name: one, path: /one, auth: none, upstream: app, rewrite: { stripPrefix: /one, addPrefix: /x }",
        "name: two, path: /two, upstream: app, rewrite: { stripPrefix: /two, addPrefix: /x/y }",
      ],
      ["0>1"],
    ],
    [
      "a protected route, to a public path",
      ["name: web, auth: none, upstream: app", `name: api, path: /api, upstream: app, ${STRIP}`],
      ["1>0"],
    ],
    ["of another upstream with the same target", [ASSETS, ADMIN.replace("app", "same")], ["0>1"]],
    ["for one method", [`methods: [GET, POST], ${ASSETS}`, `methods: [POST], ${ADMIN}`], ["0>1"]],
    ["for one host", [`hosts: ["*.x.test"], ${ASSETS}`, `hosts: [a.x.test], ${ADMIN}`], ["0>1"]],
  ])("%s", async (_what, routes, expected) => {
    expect(await overreaches(...routes)).toEqual(expected);
  });
});

describe("nothing is reported", () => {
  it.each([
    ["for /api without its prefix, alone", [`name: api, path: /api, upstream: app, ${STRIP}`]],
    [
      "for /api without its prefix, next to a public route to another backend",
      [`name: api, path: /api, upstream: app, ${STRIP}`, "name: web, auth: none, upstream: web"],
    ],
    [
      "for public paths below it",
      [
        `name: api, path: /api, upstream: app, ${STRIP}`,
        `name: health, exact: /api/health, auth: none, upstream: app, ${STRIP}`,
        `name: docs, path: /api/docs, auth: none, upstream: app, ${STRIP}`,
      ],
    ],
    ["if both require the same", [`name: api, path: /api, upstream: app, ${STRIP}`, REST]],
    [
      "if the rewrite leads to a path with the same requirement",
      [
        `name: api, path: /api, ${ADMINS}, upstream: app, rewrite: { stripPrefix: /api, addPrefix: /v2 }`,
        `name: v2, path: /v2, ${ADMINS}, upstream: app`,
        REST,
      ],
    ],
    [
      "if the target path has its own public route, so access is intended",
      [
        ASSETS.replace("stripPrefix: /static", "stripPrefix: /static, addPrefix: /assets"),
        "name: direct, path: /assets, auth: none, upstream: app",
        ADMIN,
        REST,
      ],
    ],
    ["if the methods differ", [`methods: [GET], ${ASSETS}`, `methods: [POST], ${ADMIN}`]],
    ["if the hosts differ", [`hosts: [a.test], ${ASSETS}`, `hosts: [b.test], ${ADMIN}`]],
    [
      "if only part of a segment matches",
      ["name: pub, path: /pub, auth: none, upstream: app, rewrite: { addPrefix: /adm }", ADMIN],
    ],
    ["if the stricter route is in monitor mode", [ASSETS, `mode: monitor, ${REST}`]],
  ])("%s", async (_what, routes) => {
    expect(await overreaches(...routes)).toEqual([]);
  });
});

it("names both routes, the requests and what each requires", async () => {
  const text = `${UPSTREAMS}  - { ${ASSETS} }\n  - { ${ADMIN} }\n`;
  const [problem] = await problemsOf(text);
  expect(problem).toMatchObject({ line: 7, related: { line: 8, message: "the route admin" } });
  expect(problem?.message).toBe(
    "routes[0].rewrite creates two ways to /admin of the backend: GET /static/admin is public (route assets), " +
      "GET /admin needs a token and one group of admins (route admin)",
  );
  expect(problem?.hint).toContain("add a route for /admin that requires no more than assets");
});

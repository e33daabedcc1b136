import { describe, expect, it } from "vitest";
import { problemsOf } from "./configuration-file.ts";

const UPSTREAMS = `server: { tls: off }
upstreams:
  app: { targets: ["http://127.0.0.1:8080"] }
  same: { targets: ["http://10.0.0.9:8080", "http://localhost:8080"] }
  web: { targets: ["http://127.0.0.1:3000"] }
routes:
`;

/** The lines at fault, and those of the routes that they open: `8>9`. */
async function overreaches(...routes: string[]): Promise<string[]> {
  const text = UPSTREAMS + routes.map((route) => `  - { ${route} }\n`).join("");
  const problems = await problemsOf(text);
  return problems.map(({ line, related }) => {
    // The first route stands on line 7.
    return `${(line ?? 0) - 7}>${(related?.line ?? 0) - 7}`;
  });
}

const ASSETS =
  "name: assets, path: /static, auth: none, upstream: app, rewrite: { stripPrefix: /static }";
const ADMINS = "require: { groups: { any: [admins] } }";
const ADMIN = `name: admin, path: /admin, ${ADMINS}, upstream: app`;
const REST = "name: rest, path: /, upstream: app";
const STRIP = "rewrite: { stripPrefix: /api }";

describe("a route whose rewrite leads to what another protects is refused", () => {
  it.each([
    ["a public one beside protected ones", [ASSETS, ADMIN, REST], ["0>1"]],
    ["a public one beside a catch-all", [ASSETS, REST], ["0>1"]],
    ["in monitor mode", [ASSETS.replace("auth: none", "mode: monitor"), REST], ["0>1"]],
    [
      "with a token, to what asks for a group",
      [ASSETS.replace("auth: none, ", ""), ADMIN],
      ["0>1"],
    ],
    [
      "with one group, to what asks for another",
      [ASSETS.replace("auth: none", "require: { groups: { any: [sales] } }"), ADMIN],
      ["0>1"],
    ],
    [
      "with one of two groups, to what asks for both",
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
      "two hosts that both become that of the target",
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
      "into what another reaches by its own rewrite",
      [
        "name: one, path: /one, auth: none, upstream: app, rewrite: { stripPrefix: /one, addPrefix: /x }",
        "name: two, path: /two, upstream: app, rewrite: { stripPrefix: /two, addPrefix: /x/y }",
      ],
      ["0>1"],
    ],
    [
      "a protected one, to what a public one gives away",
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

describe("nothing is said", () => {
  it.each([
    ["of /api without its prefix, alone", [`name: api, path: /api, upstream: app, ${STRIP}`]],
    [
      "of /api without its prefix, beside a public route to another backend",
      [`name: api, path: /api, upstream: app, ${STRIP}`, "name: web, auth: none, upstream: web"],
    ],
    [
      "of a public part of it",
      [
        `name: api, path: /api, upstream: app, ${STRIP}`,
        `name: health, exact: /api/health, auth: none, upstream: app, ${STRIP}`,
        `name: docs, path: /api/docs, auth: none, upstream: app, ${STRIP}`,
      ],
    ],
    ["where both ask for the same", [`name: api, path: /api, upstream: app, ${STRIP}`, REST]],
    [
      "where the rewrite leads away from what is weaker",
      [
        `name: api, path: /api, ${ADMINS}, upstream: app, rewrite: { stripPrefix: /api, addPrefix: /v2 }`,
        `name: v2, path: /v2, ${ADMINS}, upstream: app`,
        REST,
      ],
    ],
    [
      "where the path has a public route of its own: it is meant",
      [
        ASSETS.replace("stripPrefix: /static", "stripPrefix: /static, addPrefix: /assets"),
        "name: direct, path: /assets, auth: none, upstream: app",
        ADMIN,
        REST,
      ],
    ],
    [
      "where another method or host is meant",
      [`methods: [GET], ${ASSETS}`, `methods: [POST], ${ADMIN}`],
    ],
    ["of hosts apart", [`hosts: [a.test], ${ASSETS}`, `hosts: [b.test], ${ADMIN}`]],
    [
      "on a segment boundary",
      ["name: pub, path: /pub, auth: none, upstream: app, rewrite: { addPrefix: /adm }", ADMIN],
    ],
    ["where the stronger one only watches", [ASSETS, `mode: monitor, ${REST}`]],
  ])("%s", async (_what, routes) => {
    expect(await overreaches(...routes)).toEqual([]);
  });
});

it("names both routes, the requests and what each asks for", async () => {
  const text = `${UPSTREAMS}  - { ${ASSETS} }\n  - { ${ADMIN} }\n`;
  const [problem] = await problemsOf(text);
  expect(problem).toMatchObject({ line: 7, related: { line: 8, message: "the route admin" } });
  expect(problem?.message).toBe(
    "routes[0].rewrite creates two ways to /admin of the backend: GET /static/admin is public (route assets), " +
      "GET /admin needs a token and one group of admins (route admin)",
  );
  expect(problem?.hint).toContain("add a route for /admin that requires no more than assets");
});

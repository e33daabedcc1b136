/**
 * Advisories of 2025 and 2026 about rules and logins, as properties: the class numbers are those of the table in
 * SECURITY.md.
 *
 * - 10: an unknown or disabled user is compared with an empty secret, or with that of a decoy, and passes (Traefik).
 * - 34: a combination of domain, resource and method that a rule forgot falls to a weaker rule (Authelia).
 * - 35: a user name changes the LDAP filter that it is put in (ZITADEL).
 */
import fc from "fast-check";
import { type Filter, FilterParser } from "ldapts";
import { expect, it, onTestFinished } from "vitest";
import { Permit } from "../../src/core/request/permit.ts";
import type { Identity } from "../../src/core/request/identity.ts";
import type { Route } from "../../src/core/route/route.ts";
import { HashingPool } from "../../src/credentials/hashing/hashing-pool.ts";
import { createCredentialCheck } from "../../src/credentials/login-service.ts";
import { hashStore } from "../../src/credentials/stores/hash-store.ts";
import { filledFilter } from "../../src/credentials/stores/ldap/ldap-store.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { authorize } from "../../src/policy/authorize.ts";
import { createRouteTable } from "../../src/policy/route-table.ts";
import { cheapHash, STRANGER } from "../credentials/fixture.ts";
import { identityWith, requestWith, routeWith } from "../support/permit.ts";
import { recordedLog } from "../support/recorded-log.ts";

it("10: no password is that of an unknown or a disabled user, not even that of the decoy", async () => {
  const pool = new HashingPool({ concurrency: 1, queue: 100 });
  onTestFinished(() => pool.close());
  const passwords = ["apple", "banana", "", "undefined"];
  const users = passwords.map((password, at) => ({
    name: `user${at}`,
    password: cheapHash(password),
    outdated: undefined,
    groups: ["admin"],
    disabled: at % 2 === 1,
  }));
  const hashes = users.map(({ password }) => password);
  const find = (name: string) => users.find((user) => user.name === name);
  const store = hashStore({ find, passwords: () => hashes }, pool);
  const observer = { storeAnswered: () => undefined, outdatedHashUsed: () => undefined };
  const { check } = createCredentialCheck([{ name: "file", store }], pool, {
    log: recordedLog(),
    clock: systemClock,
    observer,
  });
  const names = ["nobody", "", "__proto__", "constructor", "USER0", "user0 ", "user1", "user3"];
  for (const name of names) {
    for (const password of [...passwords, ...hashes, "null", "0", "\0", "x".repeat(1025)]) {
      const { result } = await check(name, password, STRANGER);
      expect([name, password, result]).toEqual([name, password, "wrong"]);
    }
  }
  expect((await check("user0", "apple", STRANGER)).result).toBe("found");
});

const HOSTS = ["a.example", "b.example", "x.c.example"] as const;
const PATHS = ["/", "/api", "/api/admin", "/api/admin/x", "/public"] as const;
const METHODS = ["GET", "POST", "DELETE"] as const;
const GROUPS = ["sales", "admin", "ops"] as const;
const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const some = <Value>(values: readonly Value[]) => fc.subarray([...values], { minLength: 1 });

/** What a route matches, and what it requires. */
const route = fc
  .record({
    hosts: maybe(some([...HOSTS, "*.c.example"])),
    path: fc.oneof(
      fc.constantFrom(...PATHS).map((prefix) => ({ prefix })),
      fc.constantFrom(...PATHS).map((exact) => ({ exact })),
    ),
    methods: maybe(some(METHODS)),
    headers: maybe(
      fc.constantFrom([["x-a", "1"] as const], [["x-a", "1"] as const, ["x-b", "2"] as const]),
    ),
    auth: fc.constantFrom("required", "required", "required", "optional", "none"),
    any: maybe(some(GROUPS)),
    all: maybe(some(GROUPS)),
  })
  .map(({ any, all, hosts, methods, headers, auth, path }): Partial<Route> => {
    const groups = { ...(any && { any }), ...(all && { all }) };
    const required = auth === "required" && Object.keys(groups).length > 0;
    return {
      auth,
      path,
      ...(hosts && { hosts }),
      ...(methods && { methods }),
      ...(headers && { headers }),
      ...(required && { require: { groups } }),
    };
  });

const REQUESTS = HOSTS.flatMap((host) =>
  PATHS.flatMap((matchPath) =>
    METHODS.flatMap((method) =>
      [[], ["X-A", "1"], ["X-A", "1", "X-B", "2"]].map((rawHeaders) =>
        requestWith({ host, matchPath, path: matchPath, method, rawHeaders }),
      ),
    ),
  ),
);
const CALLERS = [undefined, [], ["sales"], ["admin"], ["ops", "admin"], [...GROUPS]].map(
  (groups) => groups && identityWith({ groups }),
);

type Decide = (request: (typeof REQUESTS)[number], caller: Identity | undefined) => boolean;

function table(parts: readonly Partial<Route>[]) {
  const routes = parts.map((each, at) => routeWith({ ...each, name: `route${at}` }));
  const find = createRouteTable(routes);
  const decide: Decide = (request, caller) => {
    try {
      return authorize(request, find(request), caller) instanceof Permit;
    } catch {
      return false;
    }
  };
  return { decide, nameOf: (request: (typeof REQUESTS)[number]) => find(request)?.name };
}

it("34: changing one route changes no decision about a request that is not its own", () => {
  const changes = (routes: readonly Partial<Route>[], next: Partial<Route>, n: number): boolean => {
    const at = n % routes.length;
    const [before, after] = [table(routes), table(routes.with(at, next))];
    const gone = table(routes.toSpliced(at, 1));
    return REQUESTS.some((request) => {
      const found = before.nameOf(request);
      const isOwn = found === `route${at}` || after.nameOf(request) === `route${at}`;
      return CALLERS.some((caller) => {
        const decision = before.decide(request, caller);
        // Without a route, there is no access.
        if (found === undefined && decision) return true;
        if (isOwn) return false;
        return (
          after.decide(request, caller) !== decision || gone.decide(request, caller) !== decision
        );
      });
    });
  };
  const routes = fc.array(route, { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(routes, route, fc.nat(4), (...given) => !changes(...given)),
    { numRuns: 40 },
  );
});

it("34: without one of its requirements a route admits more, and no route admits less", () => {
  const stripped = ({ require, auth, ...rest }: Partial<Route>): Partial<Route>[] => {
    const { groups } = require ?? {};
    const { any, all } = groups ?? {};
    return [
      ...(any && all
        ? [
            { ...rest, auth, require: { groups: { any } } },
            { ...rest, auth, require: { groups: { all } } },
          ]
        : []),
      ...(all && all.length > 1
        ? [{ ...rest, auth, require: { groups: { ...groups, all: all.slice(1) } } }]
        : []),
      ...(any
        ? [{ ...rest, auth, require: { groups: { ...groups, any: [...any, "more"] } } }]
        : []),
      { ...rest, auth },
      { ...rest, auth: "none" as const },
    ].map(({ auth: kept = "required", ...each }) => ({ ...each, auth: kept }));
  };
  const admitsLess = (routes: readonly Partial<Route>[], n: number): boolean => {
    const at = n % routes.length;
    const before = table(routes);
    return stripped(routes[at] ?? {}).some((weaker) => {
      const after = table(routes.with(at, weaker));
      return REQUESTS.some((request) => {
        const isOwn = before.nameOf(request) === `route${at}`;
        return CALLERS.some((caller) => {
          const [was, is] = [before.decide(request, caller), after.decide(request, caller)];
          return (was && !is) || (!isOwn && was !== is);
        });
      });
    });
  };
  const routes = fc.array(route, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(routes, fc.nat(3), (...given) => !admitsLess(...given)),
    { numRuns: 20 },
  );
});

/** Everything of a filter but the values that it compares with. */
function shapeOf(filter: Filter): unknown {
  const { type, attribute, filters, filter: inner } = Object(filter);
  return [type, attribute, filters?.map(shapeOf), inner && shapeOf(inner)];
}

it.each([
  "(uid={username})",
  "(&(objectClass=person)(|(uid={username})(mail={username})))",
  "(&(!(disabled=TRUE))(uid={username}))",
  "(member={dn})",
])("35: no name and no DN changes the filter %s", (template) => {
  const parsed = (username: string, dn: string): Filter =>
    FilterParser.parseString(filledFilter(template, { username, dn }));
  const shape = JSON.stringify(shapeOf(parsed("a", "cn=a")));
  const special = fc.string({
    unit: fc.constantFrom(
      "*",
      "(",
      ")",
      "\\",
      "\0",
      "&",
      "|",
      "!",
      "=",
      "~",
      "<",
      ">",
      ":",
      " ",
      "2a",
      "{",
      "}",
      "{dn}",
      "$&",
      "é",
      "\u{1F600}",
      "uid",
    ),
  });
  // The units that fast-check has itself take a second to load.
  const points = fc.array(fc.nat(0x10ffff), { maxLength: 20 });
  const any = points.map((each) => String.fromCodePoint(...each).toWellFormed());
  const name = fc.oneof(special, any);
  fc.assert(
    fc.property(name, name, (username, dn) => {
      fc.pre(username !== "" && dn !== "");
      const filter = parsed(username, dn);
      const values: unknown[] = [];
      const collect = (key: string, value: unknown): unknown =>
        key === "value" ? values.push(value) : value;
      JSON.stringify(filter, collect);
      const filled = template.includes("{dn}") ? dn : username;
      const fixed: unknown[] = ["person", "TRUE", filled];
      const isSame = JSON.stringify(shapeOf(filter)) === shape;
      return isSame && values.includes(filled) && values.every((value) => fixed.includes(value));
    }),
    { numRuns: 80 },
  );
});

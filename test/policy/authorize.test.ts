import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { GateError } from "../../src/core/request/errors.ts";
import type { Identity } from "../../src/core/request/identity.ts";
import { Permit } from "../../src/core/request/permit.ts";
import type { Route } from "../../src/core/route/route.ts";
import { authorize as authorizeWith, type Requirements } from "../../src/policy/authorize.ts";
import { identityWith, requestWith, routeWith } from "../support/permit.ts";

const request = requestWith();
const alice = identityWith();

/** Authorizes synchronously, as on a route without a remote authorizer. */
function authorize(...args: Parameters<typeof authorizeWith>): Permit {
  const permit = authorizeWith(...args);
  if (permit instanceof Promise) throw new Error("somebody else is asked");
  return permit;
}

/** Returns `permitted`, or the code and the reason of the refusal. */
function verdict(route: Route | undefined, identity: Identity | undefined): string {
  try {
    return Permit.is(authorize(request, route, identity)) ? "permitted" : "nothing";
  } catch (error) {
    if (!(error instanceof GateError)) throw error;
    return `${error.code} ${error.reason}`;
  }
}

describe("a permit", () => {
  test("is for this request on this route for this caller", () => {
    const route = routeWith();
    const permit = authorize(request, route, alice);
    expect(permit.request).toBe(request);
    expect(permit.route).toBe(route);
    expect(permit.identity).toBe(alice);
  });

  test("has no caller on a public route, even if the caller is known", () => {
    const route = routeWith({ auth: "none" });
    expect(authorize(request, route, undefined).identity).toBeUndefined();
    expect(authorize(request, route, alice).identity).toBeUndefined();
  });
});

describe("without a caller", () => {
  test("the verdict does not reveal whether a route exists", () => {
    expect(verdict(routeWith(), undefined)).toBe("unauthenticated missing");
    expect(verdict(undefined, undefined)).toBe("unauthenticated missing");
  });

  test("groups are not checked", () => {
    expect(verdict(routeWith({ require: { groups: { any: ["sales"] } } }), undefined)).toBe(
      "unauthenticated missing",
    );
  });
});

test("a caller without a matching route is refused for the missing route", () => {
  expect(verdict(undefined, alice)).toBe("no_route no_route");
});

describe("groups", () => {
  test.each<[NonNullable<Requirements["groups"]>, string[], boolean]>([
    [{ any: ["sales"] }, ["sales"], true],
    [{ any: ["sales", "admin"] }, ["admin"], true],
    [{ any: ["sales", "admin"] }, ["other"], false],
    [{ any: ["sales"] }, [], false],
    [{ any: [] }, ["sales"], false],
    [{ all: ["sales", "admin"] }, ["admin", "sales", "x"], true],
    [{ all: ["sales", "admin"] }, ["sales"], false],
    [{ all: [] }, [], true],
    [{ any: ["a", "b"], all: ["c"] }, ["a", "c"], true],
    [{ any: ["a", "b"], all: ["c"] }, ["a"], false],
    [{ any: ["a", "b"], all: ["c"] }, ["c"], false],
    [{}, [], true],
    [{ any: ["sales"] }, ["Sales", "sales "], false],
    [{ any: ["toString"] }, [], false],
  ])("%j, caller in %j: %s", (groups, has, permitted) => {
    const identity = identityWith({ groups: has });
    expect(verdict(routeWith({ require: { groups } }), identity)).toBe(
      permitted ? "permitted" : "forbidden forbidden",
    );
  });

  test("an additional group never causes a refusal", () => {
    const names = fc.array(fc.constantFrom("a", "b", "c", "d"));
    fc.assert(
      fc.property(names, names, names, names, (any, all, has, more) => {
        const route = routeWith({ require: { groups: { any, all } } });
        const before = verdict(route, identityWith({ groups: has }));
        const after = verdict(route, identityWith({ groups: [...has, ...more] }));
        expect(before === "permitted" && after !== "permitted").toBe(false);
      }),
    );
  });
});

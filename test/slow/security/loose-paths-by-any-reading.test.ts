/**
 * Generated paths that the strict default would refuse. They are sent without a token, and every path that the backend
 * receives must be public in every interpretation of any backend.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRouteTable } from "../../../src/policy/route-table.ts";
import { ROUTES, useLoosePaths } from "../../support/loose-paths.ts";
import { routeWith } from "../../support/permit.ts";

const PIECES = [
  ...[
    "admin",
    "public",
    "x",
    "a.b",
    "...",
    "@",
    "/",
    "//",
    "/.",
    "/..",
    "/../",
    "/./",
    ";",
    ";a=b",
  ],
  ...["..;/", "%2e", "%2E%2e", "%2f", "%2F", "%5c", "\\", "%3b", "%3B", "%23", "%3f", "%00", "%0a"],
  ...["%252f", "%25", "%2525", "%c0%af", "%c0%ae", "%61dmin", "%7e", "%20", "[1]", "|", "{x}", "^"],
  ...["%2Fadmin", "%2fpublic%2Fadmin", "%2F..%2F", "..%2F", "%5C..%5C", "%3B/", "a%2Fb", "%C3%A9"],
];

const target = fc
  .tuple(
    fc.constantFrom("/public/", "/public", "/sent/", "/sent", "/", "//", "/public%2F", "/sent;"),
    fc.array(fc.constantFrom(...PIECES), { maxLength: 6 }),
  )
  .map(([start, pieces]) => start + pieces.join(""));

const decoded = (path: string): string =>
  path.replaceAll(/%([0-7][0-9A-Fa-f])/g, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
/** Transformations of a path, each of which some backend applies. */
const STEPS: readonly ((path: string) => string)[] = [
  decoded,
  (path) => decoded(decoded(path)),
  (path) => path.replaceAll("\\", "/"),
  (path) => path.replace(/[?#\0].*$/s, ""),
  (path) => path.replaceAll(/;[^/]*/g, ""),
  (path) => path.replaceAll(/\/+/g, "/"),
  (path) => new URL(path.replace(/^\/+/, "/"), "http://backend.invalid").pathname,
];

function readingsOf(path: string): string[] {
  let readings = [path];
  for (const step of STEPS) readings = [...new Set(readings.flatMap((each) => [each, step(each)]))];
  return readings;
}

const findRoute = createRouteTable(
  ROUTES.map(({ name, path }) =>
    routeWith({
      name,
      path: { prefix: path },
      auth: name === "public" || name === "sent" ? "none" : "required",
    }),
  ),
);
const isPublic = (matchPath: string): boolean =>
  findRoute({ host: "localhost", method: "GET", matchPath })?.auth === "none";

describe("with paths: encoded and asSent", () => {
  const sent = useLoosePaths();

  it("forwarded paths are public in every interpretation", async () => {
    let forwarded = 0;
    await fc.assert(
      fc.asyncProperty(target, async (path) => {
        const { status, got } = await sent(path);
        if (got === undefined) {
          expect([path, [400, 401].includes(status)]).toEqual([path, true]);
          return;
        }
        forwarded += 1;
        const wrong = readingsOf(got).filter((reading) => !isPublic(reading));
        expect([path, got, wrong]).toEqual([path, got, []]);
      }),
      { numRuns: 1_500 },
    );
    expect(forwarded).toBeGreaterThan(50);
  });
});

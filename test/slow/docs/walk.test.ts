/** What one request executes stays small, and `docs/development.md` describes it. */
import { describe, expect, it, test } from "vitest";
import { GUARDS, recordWalks, sumOf } from "../../../docs/walk.ts";
import { codesIn, readDocument } from "../../docs/markdown.ts";

/** Rows of the life of a request that a GET on a route without limits, to a backend of HTTP/1.1, does not execute. */
const ELSEWHERE = [
  // Only types.
  "src/upstream/http/connection.ts",
  "src/upstream/http2/http2-pool.ts",
];

/**
 * A little more than was measured, since timers may run in between. Whether another proxy asks took eighteen lines of the pipeline.
 */
const LIMITS = {
  get: {
    story: { files: 20, functions: 112, lines: 1_247 },
    guards: { files: 41, functions: 145, lines: 985 },
  },
  login: {
    story: { files: 17, functions: 75, lines: 790 },
    guards: { files: 40, functions: 181, lines: 1_085 },
  },
};

const walks = await recordWalks();

describe.each(["get", "login"] as const)("a %s", (name) => {
  it.each(["story", "guards"] as const)("has a short list: %s", (part) => {
    const walk = walks[name][part];
    const limits = LIMITS[name][part];
    const { functions, lines } = sumOf(walk);
    expect(walk.length).toBeLessThanOrEqual(limits.files);
    expect(functions).toBeLessThanOrEqual(limits.functions);
    expect(lines).toBeLessThanOrEqual(limits.lines);
    // A recording that misses most of the walk would pass.
    expect(walk.length).toBeGreaterThan(limits.files / 2);
  });
});

test("every guard is executed by one of the two", () => {
  const executed = Object.values(walks).flatMap(({ guards }) => guards.map(({ file }) => file));
  const places = Object.values(GUARDS).flat();
  expect(places.filter((place) => !executed.some((file) => file.startsWith(place)))).toEqual([]);
});

/** Returns the files that the rows of a table name in their first place. */
function firstPlaces(column: string, more: string): string[] {
  const rows = readDocument("docs/development.md").rows(column, more);
  return rows.map((row) => codesIn(row[column])[0] ?? "");
}

test("a GET's story has the files that the life of a request names, in their rows' first place", () => {
  const named = firstPlaces("where", "what happens");
  const executed = new Set(walks.get.story.map(({ file }) => file));
  expect(named.length).toBeGreaterThan(12);
  expect(named.filter((file) => !executed.has(file)).toSorted()).toEqual(ELSEWHERE.toSorted());
});

test("the guards that the guide names are guards of a GET", () => {
  const named = firstPlaces("guard", "what it does");
  const executed = new Set(walks.get.guards.map(({ file }) => file));
  expect(named.length).toBeGreaterThan(6);
  expect(named.filter((file) => !executed.has(file))).toEqual([]);
});

/** What one request executes stays small, and `docs/development.md` describes it. */
import { expect, test } from "vitest";
import { recordWalks, sumOf } from "../../../docs/walk.ts";
import { codesIn, readDocument } from "../../docs/markdown.ts";

/** Rows of the life of a request that a GET on a route without limits, to a backend of HTTP/1.1, does not execute. */
const ELSEWHERE = [
  // Only types.
  "src/upstream/http/connection.ts",
  "src/upstream/http2/http2-pool.ts",
];

/** A little more than was measured, since timers may run in between. */
const LIMITS = {
  get: { files: 60, functions: 250, lines: 2_080 },
  login: { files: 54, functions: 250, lines: 1_750 },
};

const walks = await recordWalks();

test.each(["get", "login"] as const)("a %s executes few files, functions and lines", (name) => {
  const walk = walks[name];
  const limits = LIMITS[name];
  const { functions, lines } = sumOf(walk);
  expect(walk.length).toBeLessThanOrEqual(limits.files);
  expect(functions).toBeLessThanOrEqual(limits.functions);
  expect(lines).toBeLessThanOrEqual(limits.lines);
  // A recording that misses most of the walk would pass.
  expect(walk.length).toBeGreaterThan(20);
});

test("a GET executes the files that the life of a request names, in their rows' first place", () => {
  const rows = readDocument("docs/development.md").rows("where", "what happens");
  const named = rows.map((row) => codesIn(row["where"])[0] ?? "");
  const executed = new Set(walks.get.map(({ file }) => file));
  expect(named.length).toBeGreaterThan(12);
  expect(named.filter((file) => !executed.has(file)).toSorted()).toEqual(ELSEWHERE.toSorted());
});

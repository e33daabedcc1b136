/** The README's table of log fields says what an access line holds. */
import { expect, test } from "vitest";
import { formatAccessLine, outcomeWith } from "../observe/outcomes.ts";
import { codeIn, codesIn, readDocument } from "./markdown.ts";

const readme = readDocument("README.md");
const TRACED = { traceId: "0af7651916cd43dd8448eb211c80319c" };

test("every field is told in its order, and no other", () => {
  const told = readme.rows("field", "meaning").map((row) => codeIn(row["field"]));
  expect(told).toEqual(fieldsOf(formatAccessLine(outcomeWith(TRACED), 0)));
});

test("the fields that are told to be left out at times are left out", () => {
  const NOTHING = { upstream: undefined, target: undefined, upstreamMs: undefined };
  const nobody = { auth: undefined, reason: undefined, subject: undefined };
  const fewest = fieldsOf(formatAccessLine(outcomeWith({ ...NOTHING, ...nobody }), 0));
  const all = fieldsOf(formatAccessLine(outcomeWith(TRACED), 0));
  const sentence = /^.*are left out where there is nothing to say/m.exec(readme.text)?.[0];
  expect(codesIn(sentence).toSorted()).toEqual(
    all.filter((field) => !fewest.includes(field)).toSorted(),
  );
});

test("the line that is shown is one of ours", () => {
  const [line = "", ...more] = readme.blocks
    .filter(({ language }) => language === "json")
    .map(({ text }) => text.trim());
  expect(more).toEqual([]);
  const all = fieldsOf(formatAccessLine(outcomeWith(TRACED), 0));
  const shown = fieldsOf(line);
  expect(shown).toEqual(all.filter((field) => shown.includes(field)));
});

function fieldsOf(line: string): string[] {
  return Object.keys(JSON.parse(line) as object);
}

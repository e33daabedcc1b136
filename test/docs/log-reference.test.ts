/** The table of fields in `docs/reference/log.md` matches an access line. */
import { expect, test } from "vitest";
import { formatAccessLine, outcomeWith, RARE_FIELDS } from "../observe/outcomes.ts";
import { codeIn, codesIn, readDocument } from "./markdown.ts";

const reference = readDocument("docs/reference/log.md");

test("exactly the existing fields are listed, in order", () => {
  const listed = reference.rows("field", "meaning").map((row) => codeIn(row["field"]));
  expect(listed).toEqual(fieldsOf(formatAccessLine(outcomeWith(RARE_FIELDS), 0)));
});

test("the optional fields can be missing", () => {
  const NOTHING = { upstream: undefined, target: undefined, upstreamMs: undefined };
  const nobody = { auth: undefined, reason: undefined, subject: undefined };
  const fewest = fieldsOf(formatAccessLine(outcomeWith({ ...NOTHING, ...nobody }), 0));
  const all = fieldsOf(formatAccessLine(outcomeWith(RARE_FIELDS), 0));
  const sentence = /^.*are omitted when empty/m.exec(reference.text)?.[0];
  expect(codesIn(sentence).toSorted()).toEqual(
    all.filter((field) => !fewest.includes(field)).toSorted(),
  );
});

test("the example line is a real one", () => {
  const [line = "", ...more] = reference.blocks
    .filter(({ language }) => language === "json")
    .map(({ text }) => text.trim());
  expect(more).toEqual([]);
  const all = fieldsOf(formatAccessLine(outcomeWith(RARE_FIELDS), 0));
  const shown = fieldsOf(line);
  expect(shown).toEqual(all.filter((field) => shown.includes(field)));
});

function fieldsOf(line: string): string[] {
  return Object.keys(JSON.parse(line) as object);
}

/** Common YAML mistakes: each message is one line with advice, at the position to change. */
import { expect, test } from "vitest";
import { problemsOf, SMALLEST } from "./configuration-file.ts";

const DEEPER = (line: number): string =>
  `this line is indented deeper than line ${line}, which has a value already (YAML: BLOCK_AS_IMPLICIT_KEY)`;
const LIKE_ITEMS = (indent: number): string =>
  `this line is indented like the items of the list above: begin it with "- ", or indent it by ${indent} to continue the item (YAML: BAD_INDENT)`;
const COLON = 'a value with ": " in it must be in quotes (YAML: BLOCK_AS_IMPLICIT_KEY)';
const FLOW =
  'this is not allowed between brackets: a comma is missing, or a value with ": " in it needs quotes (YAML: BLOCK_IN_FLOW)';
const TAB = "a tab cannot indent a line; use spaces (YAML: TAB_AS_INDENT)";
const QUOTE = "this quote is not closed (YAML: MISSING_CHAR)";
const KEY =
  "a colon and a space must follow a key; an item of a list begins with a dash and a space (YAML: MULTILINE_IMPLICIT_KEY)";

test.each([
  [
    "a string without a dash",
    "u:\n  targets:\n    - http://a\n    http://b\n",
    "4:5",
    LIKE_ITEMS(6),
  ],
  ["an object without a dash", "routes:\n  - name: a\n  name: b\n", "3:3", LIKE_ITEMS(4)],
  ["one in the middle", "routes:\n  - name: a\n  path: /x\n  - name: b\n", "3:3", LIKE_ITEMS(4)],
  ["one in the first column", "users:\n- kind: file\nkind: x\n  path: y\n", "4:3", DEEPER(3)],
  [
    "too little indentation",
    "server:\n    listen: x\n   tls: off\n",
    "3:4",
    "this line is indented by 3; those above it by 0 or 4 (YAML: BAD_INDENT)",
  ],
  [
    "indentation between two levels",
    "server:\n  limits:\n      connections: 5\n    # a comment\n\n    heads: 3\n",
    "6:5",
    "this line is indented by 4; those above it by 0 or 2 or 6 (YAML: BAD_INDENT)",
  ],
  [
    "an item",
    "hosts:\n  - x\n - y\n",
    "3:2",
    "this line is indented by 1; those above it by 0 or 2 (YAML: BLOCK_AS_IMPLICIT_KEY)",
  ],
  [
    "an item among keys",
    "app:\n  protocol: http2\n  - http://a\n",
    "3:3",
    "an item of a list cannot be on the same level as keys: indent it further than the key of its list (YAML: BLOCK_AS_IMPLICIT_KEY)",
  ],
  ["too much indentation", "server:\n  listen: x\n    tls: off\n", "3:5", DEEPER(2)],
  ["below a value", "server: x\n  listen: y\n", "2:3", DEEPER(1)],
  ["an open double quote", 'a: "abc\nb: 2\nc: 3\n', "1:4", QUOTE],
  ["an open double quote before another", 'a: "abc\nb: "x"\n', "1:4", QUOTE],
  ["an open single quote", "a: 'abc\nb: 2\n", "1:4", QUOTE],
  ["a colon in a value", "log:\n  level: info: x\n", "2:10", COLON],
  ["a colon in a value between brackets", "users: [{ path: a: b }]\n", "1:17", FLOW],
  ["a missing comma", "users: [{ kind: file path: a }]\n", "1:17", FLOW],
  [
    "a missing comma in a list",
    'a: ["x" "y"]\n',
    "1:9",
    "a comma is missing here (YAML: MISSING_CHAR)",
  ],
  [
    "an open bracket",
    "hosts: [a, b\nlog: {}\n",
    "2:1",
    "a bracket is still open here: close it, or indent this line (YAML: BAD_INDENT)",
  ],
  ["a tab", "server:\n\tlisten: x\n", "2:1", TAB],
  ["a tab after spaces", "server:\n  listen: x\n  \ttls: off\n", "3:3", TAB],
  ["a missing colon", "server:\n  listen 127.0.0.1:80\n  tls: off\n", "2:3", KEY],
  [
    "a missing space",
    "server:\n  listen:x\n  tls: off\n",
    "2:3",
    "a space must follow the colon after a key (YAML: MULTILINE_IMPLICIT_KEY)",
  ],
])("%s", async (_what, text, place, message) => {
  const problems = await problemsOf(text);
  expect(problems.map(({ line, column }) => `${line}:${column}`)).toEqual([place]);
  expect(problems[0]?.message).toBe(message);
});

test("two mistakes are two problems", async () => {
  const problems = await problemsOf(
    "server:\n\tlisten: x\nlog:\n    level: info\n   format: json\n",
  );
  expect(problems.map(({ line }) => line)).toEqual([2, 5]);
});

test("the marks of a merge conflict", async () => {
  const text = `${SMALLEST}<<<<<<< HEAD\nlog: {}\n=======\nadmin: {}\n>>>>>>> branch\n`;
  const problems = await problemsOf(text);
  for (const { message } of problems) expect(message).toContain("the mark of a merge conflict");
  expect(problems).toHaveLength(3);
});

test("no message repeats the text, which may be a password", async () => {
  for (const text of ["a: b: hunter2\n", "a:\n  - x\n  hunter2\n", 'a: "hunter2\nb: "c"\n']) {
    expect(JSON.stringify((await problemsOf(text)).map(({ message }) => message))).not.toContain(
      "hunter2",
    );
  }
});

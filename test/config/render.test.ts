import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { renderProblems } from "../../src/config/render.ts";
import { problemsOf } from "./configuration-file.ts";

test("every problem has its position, its line, a caret under the column and the hint", async () => {
  const text = `server:\n  listn: "0.0.0.0:8443"\n  tls: off\nupstreams:\n  app: { targets: ["http://h"] }\nlog:\n\tx: 1\n`;
  const problems = await problemsOf(text.replace("\tx", "  level"));
  const lines = renderProblems(problems, { color: false }).split("\n");
  expect(lines[0]).toMatch(/^config\.yaml:2:3: /);
  expect(lines.slice(1, 3)).toEqual([
    ` 2 |   listn: "0.0.0.0:8443"`,
    "   |   ^ did you mean listen?",
  ]);
  expect(lines[3]).toMatch(/^config\.yaml:7:10: /);
  expect(lines.slice(4)).toEqual([" 7 |   level: 1", "   |          ^"]);
});

test("colours change nothing but the colour", async () => {
  const problems = await problemsOf("a: 1\nb: [\n");
  const plain = renderProblems(problems, { color: false });
  const colored = renderProblems(problems, { color: true });
  expect(colored).not.toBe(plain);
  expect(stripVTControlCharacters(colored)).toBe(plain);
});

test("a file cannot write control sequences to the terminal", async () => {
  const problems = await problemsOf('"\u001B[2Jx": 1\n');
  expect(problems.length).toBeGreaterThan(0);
  expect(renderProblems(problems, { color: false })).not.toContain("\u001B");
});

test("of a large number of problems, only the first are shown, and the others are counted", async () => {
  const problems = await problemsOf(`${"x: [".repeat(3)}${"{ a: 1, a: 2 }, ".repeat(3_000)}]]]\n`);
  expect(problems.length).toBeGreaterThan(3_000);
  const lines = renderProblems(problems, { color: false }).split("\n");
  expect(lines.length).toBeLessThan(100);
  expect(lines.at(-1)).toBe(`config.yaml: and ${problems.length - 20} more problems`);
});

test("a file cannot add line breaks or change the text direction", () => {
  const problem = { file: "f\u2028", line: 1, column: 1, message: "m", source: "\u2029\u202Ex" };
  const told = renderProblems([problem], { color: false });
  expect(told).not.toMatch(/[\p{Zl}\p{Zp}\p{Cf}]/u);
});

test("of a very long line, only the part around the column is shown", () => {
  const source = `${"a".repeat(5_000)}b${"c".repeat(5_000)}`;
  const problem = { file: "f", line: 1, column: 5_001, message: "m", source };
  const [, line = "", caret = ""] = renderProblems([problem], { color: false }).split("\n");
  expect(line.length).toBeLessThan(250);
  expect(line[caret.indexOf("^")]).toBe("b");
});

test("the hint of a problem without a line is below it", () => {
  const problem = { file: "flag x", message: "m", hint: "h" };
  expect(renderProblems([problem], { color: false })).toBe("flag x: m\n  h");
});

/**
 * No regular expression of the source takes more than linear time: an expression such as ` +$` tries each of a run of
 * blanks as a beginning, and one such as `(a+)+$` each way to share them out. Expressions for what only the operator
 * writes count as well, with three exceptions, so that none can be copied to where a client's text arrives.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "rolldown/parseAst";
import { expect, it } from "vitest";
import { slowText } from "../support/expression-attack.ts";

const SOURCES = join(import.meta.dirname, "../../src");

/** Expressions that are put together of parts that cannot overlap. */
const PUT_TOGETHER = ["config/fields.ts", "shared/examine.ts"];

/** Files with an expression that is slow for what only the operator writes: variables, filters, and certificates. */
const OPERATORS = [
  "config/load.ts",
  "config/sections/users-section.ts",
  "server/tls/certificate.ts",
];

interface Found {
  readonly file: string;
  readonly expression: RegExp;
}

const found: Found[] = [];
const constructing = new Set<string>();

for (const file of globSync(["**/*.ts", "../tools/**/*.ts"], { cwd: SOURCES })) {
  collect(file, parseAst(readFileSync(join(SOURCES, file), "utf8"), { lang: "ts" }));
}

/** Collects the literals below a node of a syntax tree, and notes files that construct expressions. */
function collect(file: string, node: unknown): void {
  if (typeof node !== "object" || node === null) return;
  if ("regex" in node && isLiteral(node.regex)) {
    found.push({ file, expression: new RegExp(node.regex.pattern, node.regex.flags) });
    return;
  }
  if ("callee" in node && isNamed(node.callee, "RegExp")) constructing.add(file);
  for (const child of Object.values(node)) collect(file, child);
}

function isNamed(value: unknown, name: string): boolean {
  return typeof value === "object" && value !== null && "name" in value && value.name === name;
}

function isLiteral(value: unknown): value is { pattern: string; flags: string } {
  return typeof value === "object" && value !== null && "pattern" in value && "flags" in value;
}

it("is fast for each of them", () => {
  expect(found.length).toBeGreaterThan(300);
  const slow = found
    .map(({ file, expression }) => ({ file, expression, text: slowText(expression) }))
    .filter(({ text }) => text !== undefined);
  expect(slow.filter(({ file }) => !OPERATORS.includes(file))).toEqual([]);
  expect([...new Set(slow.map(({ file }) => file))].toSorted()).toEqual(OPERATORS);
});

it("finds all that are put together elsewhere", () => {
  expect([...constructing].toSorted()).toEqual(PUT_TOGETHER);
});

it.each([
  // These were found by reviews, in paths and in X-Forwarded-Prefix.
  ...[/ +$/, /\/+$/],
  ...[/a+b/, /(?:x|xx)+y/, /\s*,/, /^\s*\d*\s*;/, /^(a+)+$/, /^(?:a|a)*$/, /"(?:[^"\\]|\\.)*"/g],
  ...[/^(?:\w+,?)*;$/, /^a{0,2000}[^b]*c$/, /.*$/, /^key=.*?\s*$/s, /(\d+)-\1$/],
])("%s is slow", (expression) => {
  expect(slowText(expression)).toBeDefined();
});

it.each([
  ...[/^ +$/, /;[^/]*/g, /[?#].*$/s, /\/ *\.{1,2} *(?:\/|$)/, /:\d+$/, /^(?:\/\w+)*\/?$/, /a+/],
  ...[/(?<! ) +$/, /\s{1,20}$/, /^[^,]*,[^;]*;$/, /%[0-9A-F]{2}/g],
])("%s is not", (expression) => {
  expect(slowText(expression)).toBeUndefined();
});

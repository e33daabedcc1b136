import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parsePositionedYaml } from "../../src/lib/files/positioned-yaml.ts";

const places = (text: string): string[] =>
  parsePositionedYaml(text, "f.yaml").problems.map(
    ({ file, line, column }) => `${file}:${line}:${column}`,
  );

test("a document has the positions of its keys and values", () => {
  const text = "server:\n  tls:\n  list: [a, bb]\nshared: &x { b: 1 }\nagain: *x\n";
  const { value, positionOf: place, problems } = parsePositionedYaml(text, "f.yaml");
  expect(problems).toEqual([]);
  expect(value).toEqual({
    server: { tls: null, list: ["a", "bb"] },
    shared: { b: 1 },
    again: { b: 1 },
  });
  expect(place(["server", "list", 1])).toEqual({ line: 3, column: 13, source: "  list: [a, bb]" });
  expect(place(["server", "list"], "key")).toMatchObject({ line: 3, column: 3 });
  expect(place(["again", "b"])).toMatchObject({ line: 4, column: 17 });
});

test("a missing key has the position of the mapping without it", () => {
  const { positionOf: place } = parsePositionedYaml("# comment\na:\n  b: 1\n", "f.yaml");
  expect(place(["a", "zzz"])).toMatchObject({ line: 2, column: 1 });
  expect(place(["a", "zzz", "deeper"])).toMatchObject({ line: 2, column: 1 });
});

test("a byte order mark and CRLF do not shift positions", () => {
  const { positionOf: place, value } = parsePositionedYaml("\uFEFFa: 1\r\nb: 2\r\n", "f.yaml");
  expect(value).toEqual({ a: 1, b: 2 });
  expect(place(["a"])).toMatchObject({ line: 1, column: 4 });
  expect(place(["b"])).toEqual({ line: 2, column: 4, source: "b: 2" });
});

describe("refused, with the position", () => {
  test.each([
    ["a duplicate key", "a: 1\nb: 2\na: 3\n", "f.yaml:3:1"],
    ["a key that differs only in type", "1: x\n'1': y\n", "f.yaml:2:1"],
    ["__proto__", "a:\n  __proto__: { x: 1 }\n", "f.yaml:2:3"],
    ["a key that is not text", "? [a]\n: 1\n", "f.yaml:1:3"],
    ["a tag", "a: !secret x\n", "f.yaml:1:4"],
    ["a second document", "a: 1\n---\nb: 2\n", "f.yaml:2:1"],
    ["YAML 1.1", "%YAML 1.1\n---\na: yes\n", "f.yaml:1:1"],
    ["an alias to nowhere", "a: *x\n", "f.yaml:1:4"],
    ["an alias to itself", "a: &a [*a]\n", "f.yaml:1:8"],
    ["an open quote", 'a: "abc', "f.yaml:1:4"],
  ])("%s", (_what, text, place) => {
    expect(places(text)).toEqual([place]);
  });

  test("a few lines that would expand to gigabytes", () => {
    const lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"];
    for (let level = 1; level < 10; level += 1) {
      const aliases = Array.from({ length: 10 }, () => `*a${level - 1}`).join(", ");
      lines.push(`a${level}: &a${level} [${aliases}]`);
    }
    const { value, problems } = parsePositionedYaml(lines.join("\n"), "f.yaml");
    expect(value).toBeUndefined();
    expect(problems).toHaveLength(1);
  });

  test("deeply nested brackets", () => {
    const { value, problems } = parsePositionedYaml("[".repeat(50_000), "f.yaml");
    expect(value).toBeUndefined();
    expect(problems.length).toBeGreaterThan(0);
  });
});

describe("64 KiB take less than two seconds", () => {
  const repeated = (text: (at: number) => string): string => {
    let all = "";
    for (let at = 0; all.length < 65_536; at += 1) all += text(at);
    return all;
  };
  const listOf = (mark: string): string =>
    Array.from({ length: 900 }, (_, at) => `${mark}a${at}`).join(" , ");
  test.each([
    ["of aliases of one anchor", `a: &a 1\nb: [${repeated(() => "*a,")}]\n`],
    ["of anchors, each with an alias", `b: [${repeated((at) => `&a${at} 1,*a${at},`)}]\n`],
    ["of aliases to nowhere", `b: [${repeated(() => "*a,")}]\n`],
    [
      "with a list of aliases that has an anchor itself",
      `a: [${listOf("&")}]\nb: &b [${listOf("*")}]\nc: *b\nd: [${repeated(() => "1,")}]\n`,
    ],
    ["of open quotes", repeated(() => `- "b\n\n- 'c\n\n`)],
  ])("%s", (_what, text) => {
    const began = performance.now();
    parsePositionedYaml(text, "f.yaml");
    expect(performance.now() - began).toBeLessThan(2_000);
  });
});

test("thousands of aliases are allowed, also within what has an anchor", () => {
  const listOf = (mark: string, length: number): string =>
    Array.from({ length }, (_, at) => `${mark}a${at % 50}`).join(" , ");
  const nested = `c: &c [${listOf("*", 50)}]\nd: *c\n`;
  const text = `a: [${listOf("&", 50)}]\nb: [${listOf("*", 2_000)}]\n${nested}`;
  const { value, problems } = parsePositionedYaml(text, "f.yaml");
  expect(problems).toEqual([]);
  expect(value).toMatchObject({ d: Array.from({ length: 50 }, () => null) });
});

test("the first of repeated keys counts, and __proto__ never does", () => {
  const { value } = parsePositionedYaml("a: 1\na: 2\n__proto__: { b: 1 }\n", "f.yaml");
  expect(value).toEqual({ a: 1 });
  expect(Object.keys(value as object)).toEqual(["a"]);
});

test.each([
  "password: *hunter2",
  "password: !hunter2 x",
  "password: |hunter2\n  x",
  "password: 'x' hunter2",
  'password: "\\hunter2"',
  "password: @hunter2",
  "password: &hunter2 &b x",
])("the message about %j does not repeat it", (text) => {
  const { problems } = parsePositionedYaml(text, "f.yaml");
  expect(problems.length).toBeGreaterThan(0);
  for (const { message } of problems) expect(message).not.toContain("hunter2");
});

test("merge keys are ordinary keys", () => {
  expect(parsePositionedYaml("<<: { a: 1 }", "f.yaml").value).toEqual({ "<<": { a: 1 } });
});

describe("20,000 keys in one mapping cost about as much as in twenty", () => {
  const mapping = (count: number): string =>
    Array.from({ length: count }, (_, index) => `k${index}: 1\n`).join("");
  const parsed = (count: number) => parsePositionedYaml(mapping(count), "f.yaml");
  /** Returns CPU time in milliseconds. */
  const costOf = (work: () => void): number => {
    const before = process.cpuUsage();
    work();
    return process.cpuUsage(before).user / 1000;
  };
  const twentyTimes = (work: () => void) => () => {
    for (let round = 0; round < 20; round += 1) work();
  };
  /** Allows for garbage collection at any time. */
  const about = (cost: number): number => cost * 5 + 300;

  test("to read", () => {
    const twenty = costOf(twentyTimes(() => parsed(1000)));
    expect(costOf(() => parsed(20_000))).toBeLessThan(about(twenty));
  });

  test("to find positions in", () => {
    const placing = (count: number) => {
      const { positionOf: place } = parsed(count);
      return () => {
        for (let index = 0; index < count; index += 1) place([`k${index}`]);
      };
    };
    const twenty = costOf(twentyTimes(placing(1000)));
    expect(costOf(placing(20_000))).toBeLessThan(about(twenty));
  });
});

test("every problem of a broken text stands in a line that has its column", () => {
  const text = readFileSync(join(import.meta.dirname, "../../config.yaml"), "utf8");
  const { problems } = parsePositionedYaml(text.replace(/^server:/m, "'server:"), "f");
  expect(problems.length).toBeGreaterThan(2);
  const outside = problems.filter(({ column, source }) => column > source.length + 1);
  expect(outside).toEqual([]);
});

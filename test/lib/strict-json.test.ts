import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseStrictJson } from "../../src/lib/text/strict-json.ts";

/** Returns JSON in which every object has a duplicate member, hidden by a different spelling of its name. */
function withRepeatedMember(value: Record<string, unknown>, name: string): string {
  const escaped = name.split("").map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const rest = JSON.stringify(value).slice(1);
  return `{"${escaped.join("")}":{"a:b":[":"]},${rest}`;
}

const jsonObject = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 5 }), { minKeys: 1 });
const inAscii = /^[ -~]+$/;

describe("parseStrictJson", () => {
  test("equals JSON.parse for any text without duplicates", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom(0, 2), (value, indent) => {
        const text = JSON.stringify(value, undefined, indent);
        fc.pre(!text.includes("__proto__"));
        expect(parseStrictJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  test("refuses an object with a duplicate member, however it is spelled", () => {
    fc.assert(
      fc.property(jsonObject, (value) => {
        const name = Object.keys(value).find((each) => inAscii.test(each));
        fc.pre(name !== undefined && !JSON.stringify(value).includes("__proto__"));
        const text = withRepeatedMember(value, name ?? "");
        expect(Object.keys(JSON.parse(text) as object)).toHaveLength(Object.keys(value).length);
        expect(() => parseStrictJson(text)).toThrow(SyntaxError);
        expect(() => parseStrictJson(`[1,{"deep":${text}}]`)).toThrow(SyntaxError);
      }),
    );
  });

  test.each([
    ['{"a":1,"a":1}'],
    ['{"a":{"x":1,"y":2},"a":1,"b":2}'],
    ['{"a":1,"\\u0061":1}'],
    ['[{"a":{"b":1,"b":2}}]'],
    ['{"__proto__":{"admin":true}}'],
    ['{"a":[{"__proto__":1}]}'],
    ['{"\\u005f_proto__":1}'],
    ["[".repeat(33) + "]".repeat(33)],
    ["[".repeat(200_000) + "]".repeat(200_000)],
    ['{"a":'.repeat(33) + "1" + "}".repeat(33)],
    [""],
    ["{"],
    ["{'a':1}"],
    ['\uFEFF{"a":1}'],
  ])("refuses %.40s", (text) => {
    expect(() => parseStrictJson(text)).toThrow();
  });

  test.each([
    ['{"a:b":":","c\\"":"\\\\"}'],
    ['{"a":{"x":1},"b":{"x":1}}'],
    ['[{"x":1},{"x":1}]'],
    ['{"":{"":""}}'],
    ["[".repeat(32) + "]".repeat(32)],
    ['"a:b"'],
    [' { "constructor" : 1 } '],
  ])("reads %.40s", (text) => {
    expect(parseStrictJson(text)).toEqual(JSON.parse(text));
  });

  test("reads long strings", () => {
    const text = JSON.stringify({ a: '":\\'.repeat(200_000) });
    expect(parseStrictJson(text)).toEqual(JSON.parse(text));
  });
});

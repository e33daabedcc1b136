import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Automaton, commonText } from "../../../src/lib/automaton/automaton.ts";
import { ExpressionError, parseExpression } from "../../../src/lib/automaton/expression.ts";

const compiled = (text: string): Automaton => new Automaton(parseExpression(text));

const atom = fc.constantFrom(
  ...["a", "b", "/", ".", "-", "\\.", "\\/", "\\d", "\\w", "\\D", "[ab]", "[^/]", "[a-c0-9]"],
  ...["[\\d_-]", "[^\\w]", "[.$]", "[a\\]]", "1", "%", "~"],
);
const expression = fc.letrec<{ all: string }>((tie) => ({
  all: fc.oneof(
    { maxDepth: 4 },
    atom,
    fc.tuple(tie("all"), tie("all")).map(([a, b]) => `${a}${b}`),
    fc.tuple(tie("all"), tie("all")).map(([a, b]) => `(${a}|${b})`),
    fc
      .tuple(tie("all"), fc.constantFrom("*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}"))
      .map(([a, repetition]) => `(?:${a})${repetition}`),
  ),
})).all;
const text = fc.array(fc.constantFrom(...Array.from("ab1/-._%~$] é\n")), { maxLength: 8 });

describe("an automaton", () => {
  it("matches the same complete texts as the equivalent JavaScript expression", () => {
    let matched = 0;
    fc.assert(
      fc.property(expression, fc.array(text, { minLength: 5, maxLength: 5 }), (pattern, texts) => {
        const automaton = compiled(pattern);
        // Without `u`, V8 14.6 (Node 26) says that "a" matches /^(?:[^/].)*$/s once it has compiled the expression.
        const reference = new RegExp(`^(?:${pattern})$`, "su");
        for (const each of texts.map((characters) => characters.join(""))) {
          matched += Number(reference.test(each));
          expect([pattern, each, automaton.matches(each)]).toEqual([
            pattern,
            each,
            reference.test(each),
          ]);
        }
      }),
      { numRuns: 2_000 },
    );
    expect(matched).toBeGreaterThan(100);
  });

  it("knows the common prefix of all matches, and finds an example", () => {
    expect(compiled("/users/[0-9]+/orders").beginning).toBe("/users/");
    expect(compiled("/api(/v1)?").beginning).toBe("/api");
    expect(compiled("/(abc|abd)").beginning).toBe("/ab");
    fc.assert(
      fc.property(expression, (pattern) => {
        const automaton = compiled(pattern);
        const found = commonText([automaton], { needed: [0], wanted: () => true });
        fc.pre(found !== undefined);
        expect(automaton.matches(found)).toBe(true);
        expect(found.startsWith(automaton.beginning)).toBe(true);
      }),
    );
  });

  it.each([
    ["/^a", 2],
    ["/a$", 3],
    ["/(a", 2],
    ["/a)", 3],
    ["/[a", 2],
    ["/[]", 2],
    ["/[z-a]", 3],
    ["/[[:digit:]]", 3],
    ["/a**", 4],
    ["/a*?", 4],
    ["/*", undefined],
    ["*", 1],
    ["/a{", 3],
    ["/a{3,2}", 3],
    ["/a}", 3],
    ["/(?=a)", 2],
    ["/(?<n>a)", 2],
    ["/(?i)a", 2],
    ["/(a)\\1", 5],
    ["/\\bx", 2],
    ["/\\", 2],
    ["/a b", 3],
    ["/é", 2],
  ])("%s is refused at character %s", (pattern, at) => {
    if (at === undefined) return expect(compiled(pattern).matches("//")).toBe(true);
    expect(() => compiled(pattern)).toThrow(ExpressionError);
    expect(() => compiled(pattern)).toThrow(expect.objectContaining({ at }));
  });

  it.each(["/(a|b)*a(a|b){12}", "/(a{100}){100}", "/(((a?){30}){30}){4}", `/${"a".repeat(1_000)}`])(
    "%s is refused as too expensive, and quickly",
    (pattern) => {
      const before = process.cpuUsage();
      expect(() => compiled(pattern)).toThrow(ExpressionError);
      const { user, system } = process.cpuUsage(before);
      expect(user + system).toBeLessThan(1_000_000);
    },
  );

  it.each(["/(a+)+b", "/(a|a)*b", "/(a*)*b", "/(.*)*(.*)*b", "/([a-z]+)*/([a-z/]+)*b"])(
    "%s takes linear time",
    (pattern) => {
      const automaton = compiled(pattern);
      const cost = (length: number): number => {
        const hostile = `/${"a".repeat(length)}!`;
        const before = performance.now();
        for (let round = 0; round < 20; round += 1) expect(automaton.matches(hostile)).toBe(false);
        return performance.now() - before;
      };
      cost(16_000);
      // A backtracking engine would take longer than the age of the universe.
      expect(cost(64_000)).toBeLessThan(1_000);
    },
  );
});

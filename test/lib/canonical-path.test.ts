import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalPath } from "../../src/lib/http/path/canonical-path.ts";

describe("an unambiguous path", () => {
  test.each([
    ["the root", "/", "/"],
    ["plain segments", "/api/v1/orders", "/api/v1/orders"],
    ["a slash at the end", "/docs/", "/docs/"],
    ["unreserved characters", "/a-b_c.d~e/9", "/a-b_c.d~e/9"],
    ["delimiters that mean nothing here", "/a!$&'()*+,=:@z", "/a!$&'()*+,=:@z"],
    ["dots that do not form a dot segment", "/.well-known/.../a.b/..c", "/.well-known/.../a.b/..c"],
    ["encoded unreserved characters", "/%61%5F%2d%7E%39%2Etxt", "/a_-~9.txt"],
    ["hex digits in lower case", "/%c3%a9%e2%82%ac", "/%C3%A9%E2%82%AC"],
    ["a code point beyond the basic plane", "/%F0%9F%98%80", "/%F0%9F%98%80"],
    ["a blank", "/a%20b", "/a%20b"],
    ["an encoded percent sign before no hex digits", "/100%25", "/100%25"],
    ["the same in the middle", "/100%25-off", "/100%25-off"],
    ["two encoded percent signs", "/%25%25", "/%25%25"],
  ])("%s", (_name, raw, path) => {
    expect(canonicalPath(raw)).toEqual({ path, matchPath: path });
  });

  test("preserves the encoding of a delimiter, but is matched without it", () => {
    expect(canonicalPath("/%40me/a%3ab%2Cc")).toEqual({
      path: "/%40me/a%3Ab%2Cc",
      matchPath: "/@me/a:b,c",
    });
    expect(canonicalPath("/%21%24%26%27%28%29%2A%2B%3D")?.matchPath).toBe("/!$&'()*+=");
    expect(canonicalPath("/%5B%20%C3%A9%25")?.matchPath).toBe("/%5B%20%C3%A9%25");
  });
});

describe("an ambiguous path is refused", () => {
  test.each([
    ["nothing", ""],
    ["no slash in front", "docs"],
    ["the asterisk", "*"],
    ["an empty segment", "/a//b"],
    ["an empty segment in front", "//a"],
    ["an empty segment at the end", "/a//"],
    ["one dot", "/a/./b"],
    ["two dots", "/a/../b"],
    ["one dot at the end", "/a/."],
    ["two dots at the end", "/a/.."],
    ["only two dots", "/.."],
    ["encoded dots", "/a/%2e%2e/b"],
    ["encoded dots in upper case", "/a/%2E%2E"],
    ["half encoded dots", "/a/.%2e/b"],
    ["the other half", "/a/%2E./b"],
    ["one encoded dot", "/a/%2e"],
    ["a back-slash", "/a\\b"],
    ["an encoded back-slash", "/a%5Cb"],
    ["an encoded back-slash in lower case", "/a%5cb"],
    ["a semicolon", "/a;b/c"],
    ["an encoded semicolon", "/a%3Bb"],
    ["an encoded slash", "/a%2Fb"],
    ["an encoded slash in lower case", "/a%2fb"],
    ["an encoded question mark", "/a%3Fb"],
    ["an encoded number sign", "/a%23b"],
    ["a question mark", "/a?b"],
    ["a number sign", "/a#b"],
    ["NUL", "/a%00"],
    ["a line feed", "/a%0a"],
    ["an escape", "/a%1B"],
    ["DEL", "/a%7f"],
    ["an unencoded control character", "/a\u0001"],
    ["an unencoded space", "/a b"],
    ["two layers", "/a%252fb"],
    ["three layers", "/a%25252e"],
    ["a second layer whose hex digits are encoded", "/a/%25%32%65%25%32%65/b"],
    ["a second layer whose second hex digit is encoded", "/a/%252%65"],
    ["a second layer whose first hex digit is encoded", "/a%25%32Fb"],
    ["an overlong slash", "/a%C0%AFb"],
    ["an overlong dot", "/%C0%AE%C0%AE/b"],
    ["an overlong slash of three octets", "/%E0%80%AF"],
    ["a surrogate", "/%ED%A0%80"],
    ["a lone continuation", "/%80"],
    ["a sequence cut short", "/%C3"],
    ["an octet that is never valid in UTF-8", "/%FF"],
    ["no hex digits", "/a%zz"],
    ["one hex digit", "/a%2"],
    ["a percent sign alone", "/a%"],
    ["a letter beyond ASCII", "/caf\u00e9"],
    ["a letter beyond ASCII together with an encoding", "/%41\u00e9"],
    ["a full-width slash", "/a\uff0fb"],
    ["brackets", "/a[b]"],
    ["a pipe", "/a|b"],
    ["a quote", '/a"b'],
  ])("%s", (_name, raw) => {
    expect(canonicalPath(raw)).toBeUndefined();
  });
});

/** Pieces of paths, with frequent dangerous ones. */
const piece = fc.oneof(
  fc.constantFrom("/", ".", "..", "%2e", "%2E", "%25", "%", "\\", ";", "%2f", "%5C", "//", "@"),
  fc.constantFrom("%32", "%65", "%40", "%3a", "%c3%a9", "%C0%AF", "%00", "2e", "2F", "a"),
  fc.constantFrom("/%25%32%65/", "/%252%65%25%32e", "%25%35%63"),
  fc.integer({ min: 0, max: 255 }).map((octet) => `%${octet.toString(16).padStart(2, "0")}`),
  fc.string({ maxLength: 3, unit: "binary" }),
);
const path = fc.array(piece, { maxLength: 12 }).map((pieces) => `/${pieces.join("")}`);
/** Paths, most of which are accepted. */
const harmless = fc
  .array(fc.constantFrom("/a", "/%40", "x", "%41", "%c3%a9", "%25", "@", ".", "~", "0"), {
    maxLength: 8,
  })
  .map((pieces) => `/${pieces.join("").replace(/^\/+/, "")}`);
const anything = fc.oneof(path, harmless, fc.string({ unit: "binary" }));
const RUNS = { numRuns: 3000 };

/** Decodes a path once more, like a careless backend. */
function decodedAgain(text: string): string {
  return text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

describe("any input", () => {
  test("causes no exception, and the result has only allowed characters", () => {
    fc.assert(
      fc.property(anything, (raw) => {
        const found = canonicalPath(raw);
        if (found === undefined) return;
        expect(found.path).toMatch(/^(?:\/(?:[A-Za-z0-9\-._~!$&'()*+,=:@]|%[0-9A-F]{2})+)*\/?$/);
        expect(found.path).toMatch(/^\//);
      }),
      RUNS,
    );
  });

  test("has an idempotent canonical form", () => {
    fc.assert(
      fc.property(anything, (raw) => {
        const found = canonicalPath(raw);
        if (found !== undefined) expect(canonicalPath(found.path)).toEqual(found);
      }),
      RUNS,
    );
  });

  test("is matched by a path equivalent to the forwarded one", () => {
    fc.assert(
      fc.property(anything, (raw) => {
        const found = canonicalPath(raw);
        if (found === undefined) return;
        expect(decodedAgain(found.matchPath)).toBe(decodedAgain(found.path));
        expect(found.matchPath).not.toMatch(/%(?:2[14678-9A-C]|3[AD]|40)/);
      }),
      RUNS,
    );
  });

  test("never yields an empty segment or a dot segment, however often it is decoded", () => {
    fc.assert(
      fc.property(anything, (raw) => {
        let text = canonicalPath(raw)?.path ?? "/";
        for (let before = ""; before !== text; text = decodedAgain(text)) {
          expect(text).not.toMatch(/\/\/|\\|;|\/\.{1,2}(?:\/|$)/);
          before = text;
        }
      }),
      RUNS,
    );
  });

  test("is mostly accepted if it is harmless", () => {
    const taken = fc.sample(harmless, 200).filter((raw) => canonicalPath(raw) !== undefined);
    expect(taken.length).toBeGreaterThan(50);
  });
});

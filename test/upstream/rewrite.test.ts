import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalPath, type CanonicalPath } from "../../src/lib/http/path/canonical-path.ts";
import { rewritePath } from "../../src/upstream/headers/rewrite.ts";
import { routeWith } from "../support/permit.ts";

/** Returns a path in the form that intake produces. */
function spelled(path: string): CanonicalPath {
  const both = canonicalPath(path);
  if (both === undefined) throw new Error(`${path} can be read in two ways`);
  return both;
}

const rewritten = (path: string, stripPrefix?: string, addPrefix?: string): string =>
  rewritePath(
    routeWith({
      rewrite: {
        ...(stripPrefix === undefined ? {} : { stripPrefix }),
        ...(addPrefix === undefined ? {} : { addPrefix }),
      },
    }),
    spelled(path),
  );

test.each([
  ["/api/orders", "/api", undefined, "/orders"],
  ["/api/orders/", "/api", undefined, "/orders/"],
  ["/api/orders", "/api/", undefined, "/orders"],
  ["/api", "/api", undefined, "/"],
  ["/api/", "/api", undefined, "/"],
  ["/apix/orders", "/api", undefined, "/apix/orders"],
  ["/other", "/api", undefined, "/other"],
  ["/orders", undefined, "/v2", "/v2/orders"],
  ["/orders", undefined, "/v2/", "/v2/orders"],
  ["/", undefined, "/v2", "/v2/"],
  ["/api/orders", "/api", "/v2/x", "/v2/x/orders"],
  ["/api", "/api", "/v2", "/v2/"],
  ["/api/api/x", "/api", undefined, "/api/x"],
  ["/api/%40me", "/api", "/v2", "/v2/%40me"],
  ["/orders", "/", "/", "/orders"],
  // A prefix matches in every spelling, and the rest stays as sent.
  ["/%40me/x", "/@me", undefined, "/x"],
  ["/@me/%40x", "/@me", undefined, "/%40x"],
  ["/%40me", "/@me", "/v2", "/v2/"],
  ["/a%2Cb%20/%21x", "/a,b%20", undefined, "/%21x"],
  ["/%40mex/y", "/@me", undefined, "/%40mex/y"],
])("%s without %s and with %s is %s", (path, strip, add, expected) => {
  expect(rewritten(path, strip, add)).toBe(expected);
});

test("without a rewrite the path is the same", () => {
  expect(rewritePath(routeWith(), spelled("/a/b/"))).toBe("/a/b/");
});

test("the result has no empty segments if its parts have none", () => {
  const path = fc
    .array(fc.constantFrom("a", "b", "ab"), { maxLength: 4 })
    .chain((segments) => fc.constantFrom(`/${segments.join("/")}`, `/${segments.join("/")}/`))
    .map((text) => text.replace("//", "/"));
  fc.assert(
    fc.property(path, path, path, (whole, strip, add) => {
      const result = rewritten(whole, strip, add);
      expect(result).toMatch(/^\//);
      expect(result).not.toContain("//");
      const tail = result.slice(add.replace(/\/$/, "").length);
      expect(whole.endsWith(tail) || tail === "/").toBe(true);
    }),
  );
});

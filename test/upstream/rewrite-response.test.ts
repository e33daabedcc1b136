import { describe, expect, test } from "vitest";
import type { RouteRewrite } from "../../src/core/route/route.ts";
import { mapAnswerBack } from "../../src/upstream/headers/incoming-headers.ts";
import { permitFor } from "../support/permit.ts";

function located(location: string, rewrite: RouteRewrite, ...hosts: readonly string[]): unknown {
  const headers = { location };
  mapAnswerBack(headers, permitFor({}, { rewrite }), ["api.example.com", ...hosts]);
  return headers.location;
}

function cookie(text: string, rewrite: RouteRewrite): unknown {
  const headers = { "set-cookie": [text] };
  mapAnswerBack(headers, permitFor({}, { rewrite }), ["api.example.com"]);
  return headers["set-cookie"][0];
}

const SHOP = { stripPrefix: "/shop" };
const MOVED = { stripPrefix: "/shop", addPrefix: "/v2" };

describe("a URL in a response", () => {
  test.each([
    ["/a", SHOP, "/shop/a"],
    ["/", SHOP, "/shop/"],
    ["/shop/a", SHOP, "/shop/a"],
    ["http://api.example.com/shop", SHOP, "http://api.example.com/shop"],
    ["/shopping", SHOP, "/shop/shopping"],
    ["/shop/a", { ...SHOP, responses: true }, "/shop/shop/a"],
    ["/shop/a", MOVED, "/shop/a"],
    ["/v2", MOVED, "/shop"],
    ["/v2/a?b#c", MOVED, "/shop/a?b#c"],
    ["/v3/a", MOVED, "/v3/a"],
    ["/v2x", MOVED, "/v2x"],
    ["http://api.example.com", SHOP, "http://api.example.com/shop/"],
    ["//api.example.com/a", SHOP, "//api.example.com/shop/a"],
    ["https://other.example.com/a", SHOP, "https://other.example.com/a"],
    ["next", SHOP, "next"],
    ["../up", SHOP, "../up"],
    ["?page=2", SHOP, "?page=2"],
    ["mailto:a@example.com", SHOP, "mailto:a@example.com"],
    ["", SHOP, ""],
  ])("%s", (location, rewrite, expected) => {
    expect(located(location, rewrite)).toBe(expected);
  });

  test("with an internal host becomes a path", () => {
    expect(located("http://10.0.0.1:8080/a?b", SHOP, "10.0.0.1:8080")).toBe("/shop/a?b");
  });

  test("with the target's own address becomes a path, although the backend got the client's host", () => {
    expect(located("http://10.0.0.1:8080/a?b", SHOP, "10.0.0.1:8080")).toBe("/shop/a?b");
    expect(located("http://10.0.0.1:8080/shop/a", SHOP, "10.0.0.1:8080")).toBe("/shop/a");
    expect(located("http://10.0.0.2:8080/a", SHOP, "10.0.0.1:8080")).toBe("http://10.0.0.2:8080/a");
    expect(located("http://api.example.com/a", SHOP, "10.0.0.1:8080")).toBe(
      "http://api.example.com/shop/a",
    );
  });

  test("never becomes a URL of another host", () => {
    const add = { addPrefix: "/v2" };
    for (const path of ["/v2//evil.example", "/v2/\\evil.example", "/v2/\t/evil.example"]) {
      expect(located(path, add)).toBe(path);
      expect(located(`http://10.0.0.1${path}`, add, "10.0.0.1")).toBe(`http://10.0.0.1${path}`);
    }
  });
});

test.each([
  ["a=1; Path=/", SHOP, "a=1; Path=/shop"],
  ["a=1; Path=/shop", SHOP, "a=1; Path=/shop"],
  ["a=1; Path=/cart; Secure", SHOP, "a=1; Path=/shop/cart; Secure"],
  ["a=1; Path=/v2", MOVED, "a=1; Path=/shop"],
  ["a=1; Path=/v2/x", MOVED, "a=1; Path=/shop/x"],
  ["a=1; Path=/", { addPrefix: "/v2" }, "a=1; Path=/"],
  ["a=1; Path=/other", MOVED, "a=1; Path=/other"],
  ["path=/x; Secure", SHOP, "path=/x; Secure"],
])("the cookie %s", (text, rewrite, expected) => {
  expect(cookie(text, rewrite)).toBe(expected);
});

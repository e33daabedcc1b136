import { describe, expect, test } from "vitest";
import { load, problemsOf, SMALLEST } from "./configuration-file.ts";

const tokens = (text: string, routes = ""): string => `${SMALLEST}tokens: { ${text} }\n${routes}`;
const assertion = (text = "", more = ""): string =>
  tokens(`${more} assertion: { audience: backend, ${text} }`);

async function messages(text: string): Promise<string[]> {
  const problems = await problemsOf(text);
  return problems.map(({ message }) => message);
}

describe("assertions", () => {
  test.each([
    [
      "the audience of tokens",
      tokens("assertion: { audience: sallyport }"),
      /could be sent as a tok/,
    ],
    ["a secret", assertion("", "algorithm: HS256,"), /needs another algorithm/],
    ["a secret of their own", assertion("algorithm: HS256"), /tokens.assertion.algorithm/],
    ["the directory of tokens", assertion("keys: keys", "keys: keys,"), /is the directory of tok/],
    [
      "another algorithm with the keys of tokens",
      assertion("algorithm: EdDSA", "keys: keys,"),
      /needs tokens.assertion.keys: the keys of tokens.keys sign ES256/,
    ],
    ["no name of a header", assertion('header: "a b"'), /must be the name of a header/],
    [
      "a header that frames",
      assertion("header: Content-Length"),
      /must not be a header that frames/,
    ],
    [
      "a claim that they have",
      assertion("claims: [exp]"),
      /must not be a claim that the assertion sets itself/,
    ],
    [
      "no settings for a route",
      `${SMALLEST}routes: [{ name: r, path: /, upstream: app, assertion: true }]`,
      /needs tokens.assertion/,
    ],
    [
      "nobody to speak of",
      tokens(
        "assertion: { audience: backend }",
        "routes: [{ name: r, path: /, upstream: app, auth: none, assertion: true }]",
      ),
      /needs a caller/,
    ],
  ])("with %s are refused", async (_what, text, message) => {
    expect(await messages(text)).toEqual([expect.stringMatching(message)]);
  });

  test.each([
    ["keys and an algorithm of their own", assertion("keys: own, algorithm: EdDSA", "keys: keys,")],
    [
      "keys of their own beside a secret",
      assertion("keys: own, algorithm: PS256", "algorithm: HS256,"),
    ],
    ["a key that is made at start", assertion("algorithm: ES384", "algorithm: HS256,")],
    ["the keys of tokens", assertion("algorithm: ES256", "keys: keys,")],
  ])("with %s are fine", async (_what, text) => {
    const { configuration } = await load(text);
    expect(configuration.tokens.assertion?.audience).toBe("backend");
  });
});

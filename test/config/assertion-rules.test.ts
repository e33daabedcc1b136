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
    ["their own secret", assertion("algorithm: HS256"), /tokens.assertion.algorithm/],
    ["the directory of tokens", assertion("keys: keys", "keys: keys,"), /is the directory of tok/],
    [
      "the keys of tokens and another algorithm",
      assertion("algorithm: EdDSA", "keys: keys,"),
      /needs tokens.assertion.keys: the keys of tokens.keys sign ES256/,
    ],
    ["an invalid header name", assertion('header: "a b"'), /must be the name of a header/],
    [
      "a header that delimits messages",
      assertion("header: Content-Length"),
      /must not be a header that frames/,
    ],
    [
      "a standard claim",
      assertion("claims: [exp]"),
      /must not be a claim that the assertion sets itself/,
    ],
    [
      "a route but no settings",
      `${SMALLEST}routes: [{ name: r, path: /, upstream: app, assertion: true }]`,
      /needs tokens.assertion/,
    ],
    [
      "a route without callers",
      tokens(
        "assertion: { audience: backend }",
        "routes: [{ name: r, path: /, upstream: app, auth: none, assertion: true }]",
      ),
      /needs a caller/,
    ],
  ])("are refused with %s", async (_what, text, message) => {
    expect(await messages(text)).toEqual([expect.stringMatching(message)]);
  });

  test.each([
    ["their own keys and algorithm", assertion("keys: own, algorithm: EdDSA", "keys: keys,")],
    [
      "their own keys, with a secret for tokens",
      assertion("keys: own, algorithm: PS256", "algorithm: HS256,"),
    ],
    ["a key generated at start", assertion("algorithm: ES384", "algorithm: HS256,")],
    ["the keys of tokens", assertion("algorithm: ES256", "keys: keys,")],
  ])("are accepted with %s", async (_what, text) => {
    const { configuration } = await load(text);
    expect(configuration.tokens.assertion?.audience).toBe("backend");
  });
});

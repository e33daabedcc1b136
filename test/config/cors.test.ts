import { expect, test } from "vitest";
import { problemsOf, SMALLEST } from "./configuration-file.ts";

test.each([
  ["a path", "origins: [https://app.example.com/]", "cors.origins[0]"],
  ["no scheme", "origins: [app.example.com]", "cors.origins[0]"],
  [
    "a default port, which browsers omit",
    'origins: ["https://app.example.com:443"]',
    "cors.origins[0]",
  ],
  ["capitals", "origins: [https://App.example.com]", "cors.origins[0]"],
  ["half a label", 'origins: ["https://a*.example.com"]', "cors.origins[0]"],
  ["a wildcard without a scheme", 'origins: ["*://example.com"]', "cors.origins[0]"],
  ["null", 'origins: ["null"]', "cors.origins[0]"],
  ["none", "origins: []", "cors.origins"],
  ["* with credentials", 'origins: ["*"], credentials: true', "cors.origins"],
  [
    "every header with credentials",
    'origins: ["https://a.example"], headers: ["*"], credentials: true',
    "cors.headers",
  ],
  ["an invalid method", 'origins: ["*"], methods: [get]', "cors.methods[0]"],
])("refused: %s", async (_what, text, key) => {
  const problems = await problemsOf(`${SMALLEST}cors: { ${text} }\n`);
  expect(problems.map(({ message }) => message.split(" ")[0])).toEqual([key]);
});

import { expect, test } from "vitest";
import { parse } from "yaml";
import { readDocument } from "./markdown.ts";

/** That each logs somebody in is seen in test/real/user-examples.test.ts. */
test("every kind of user store is moved into by ten lines of YAML, everything else included", () => {
  const examples = readDocument("docs/users.md").blocks.filter(
    ({ language, text }) => language === "yaml" && text.includes("\nusers:\n"),
  );
  const kinds = examples.map(({ text }) => {
    const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    expect(lines.length, text).toBeLessThanOrEqual(10);
    const { users } = parse(text) as { readonly users: readonly { readonly kind: string }[] };
    return users[0]?.kind;
  });
  expect(kinds).toEqual(["htpasswd", "ldap", "postgres", "sqlite", "http"]);
});

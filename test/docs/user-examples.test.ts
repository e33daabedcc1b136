import { expect, test } from "vitest";
import { parse } from "yaml";
import { readDocument } from "./markdown.ts";

/** test/real/user-examples.test.ts checks that each of them logs a user in. */
test("a complete configuration with any kind of user store has at most ten lines", () => {
  const pages = ["docs/users.md", "docs/how-to/ldap.md"];
  const examples = pages
    .flatMap((page) => readDocument(page).blocks)
    .filter(({ language, text }) => language === "yaml" && text.includes("\nusers:\n"));
  const kinds = examples.map(({ text }) => {
    const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    expect(lines.length, text).toBeLessThanOrEqual(10);
    const { users } = parse(text) as { readonly users: readonly { readonly kind: string }[] };
    return users[0]?.kind;
  });
  expect(kinds).toEqual(["htpasswd", "postgres", "sqlite", "http", "ldap"]);
});

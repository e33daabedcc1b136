/** The references name what the source offers where it lists nothing that a test could compare as a whole. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { NAMED_REVOCATIONS } from "../../src/core/revocation.ts";
import { ACCESS_FIELDS } from "../../src/observe/log/access-log.ts";
import { command } from "../cli/command.ts";
import { readDocument, ROOT } from "./markdown.ts";

const source = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** Every match of the first group in the files that a pattern names. */
function found(files: string, pattern: RegExp): string[] {
  const texts = globSync(files, { cwd: ROOT }).map(source);
  return [
    ...new Set(texts.flatMap((text) => [...text.matchAll(pattern)].map(([, word = ""]) => word))),
  ];
}

function missingIn(
  document: string,
  words: readonly string[],
  spelled: (word: string) => string,
): string[] {
  const { text } = readDocument(document);
  return words.filter((word) => !text.includes(spelled(word)));
}

test("the reference lists every page of the admin listener", () => {
  const pages = found(
    "src/server/{admin,endpoints}/*.ts",
    /(?:path:|_PATH =|\bpage\(|Page\("\w+",)\s*"(\/[^"]+)"/g,
  );
  expect(pages).toEqual(expect.arrayContaining(["/-/config", "/metrics", "/-/explain", "/livez"]));
  const { text } = readDocument("docs/reference/http.md");
  expect(
    pages.filter((page) => !["`", "?"].some((end) => text.includes(`\`${page}${end}`))),
  ).toEqual([]);
});

test("the reference lists every member of the answer to a login", () => {
  const [answer = ""] = found("src/core/login.ts", /interface LoginAnswer \{([^}]*)\}/g);
  const members = [...answer.matchAll(/readonly (\w+)\??:/g)].map(([, member = ""]) => member);
  expect(members).toContain("token");
  const row =
    /^\| `POST \/api\/authenticate` .*$/m.exec(source("docs/reference/http.md"))?.[0] ?? "";
  expect(members.filter((member) => !row.includes(`\`${member}\``))).toEqual([]);
});

test("the list of access fields has every field that is ever written, optional ones included", () => {
  const written = found("src/observe/log/access-log.ts", /[{,]"(\w+)":/g);
  expect(written.toSorted()).toEqual([...ACCESS_FIELDS].toSorted());
  expect(missingIn("docs/reference/log.md", written, (field) => `| \`${field}\` |`)).toEqual([]);
});

test("the reference names every kind of password hash", () => {
  const [kinds = ""] = found(
    "src/credentials/hashing/password-hash.ts",
    /const KINDS = \{([^}]*)\}/g,
  );
  const names = kinds
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  expect(names).toContain("scrypt");
  expect(missingIn("docs/reference/configuration.md", names, (name) => name)).toEqual([]);
});

test("help and documentation name the flag of every kind of revocation", async () => {
  const { out } = await command(["token", "--help"]);
  const flags = NAMED_REVOCATIONS.map(({ word }) => `--${word}`);
  expect(flags).toEqual(expect.arrayContaining(["--jti", "--subject"]));
  expect(flags.filter((flag) => !out.includes(flag))).toEqual([]);
  expect(missingIn("docs/how-to/revoke.md", flags, (flag) => `token revoke ${flag}`)).toEqual([]);
  const named = flags.map((flag) => `?${flag.slice(2)}=…`);
  expect(missingIn("docs/reference/http.md", named, (query) => query)).toEqual([]);
});

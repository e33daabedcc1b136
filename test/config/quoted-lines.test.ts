import { describe, expect, test } from "vitest";
import { knownKeys, type KnownKeys } from "../../src/config/schema-parts.ts";
import { mayHoldSecret } from "../../src/config/render.ts";
import { problemsOf, SMALLEST } from "./configuration-file.ts";

const UPSTREAM = "server: { tls: off }\nupstreams: { app: { targets: [LINE] } }\n";

describe("a line that may contain a secret is not repeated", () => {
  test.each([
    ["a token in a query", UPSTREAM.replace("LINE", '"http://127.0.0.1:80/?token=hunter2"')],
    ["a key in a query", UPSTREAM.replace("LINE", '"http://127.0.0.1:80/?a=1&api_key=hunter2"')],
    ["a password in a URL", UPSTREAM.replace("LINE", '"http://a:hunter2@127.0.0.1:80"')],
    ["a user in a URL", UPSTREAM.replace("LINE", '"http://hunter2@127.0.0.1:80"')],
    ["an unknown key", `${SMALLEST}passphrase: hunter2\n`],
    ["one without a space", `${SMALLEST}log: { level: "pwd=hunter2" }\n`],
    ["a credential", `${SMALLEST}db_cred: hunter2\n`],
    ["a bearer", `${SMALLEST}log: { level: info, bearer: hunter2 }\n`],
    ["the default of a reference", `${SMALLEST}log: { level: "\${DB_AUTH:-hunter2}" }\n`],
  ])("%s", async (_what, text) => {
    const problems = await problemsOf(text);
    expect(problems).not.toEqual([]);
    expect(JSON.stringify(problems)).not.toContain("hunter2");
  });
});

test("a line without a secret is repeated, even if its key's name suggests one", async () => {
  const text = `${SMALLEST}routes: [{ name: a, upstream: app, auth: non }]\n`;
  const [problem] = await problemsOf(text);
  expect(problem?.source).toContain("auth: non");
});

test("of the schema's keys, only those with secrets hide their line", () => {
  const names = (known: KnownKeys): string[] =>
    known.names.flatMap((name) => {
      const below = known.below(name);
      return [name, ...(below === undefined ? [] : names(below))];
    });
  const hidden = names(knownKeys()).filter((name) => mayHoldSecret(`${name}: x`));
  // A header named authorization contains a token, and so may a cookie; here it is only a name.
  const expected = ["apiKeys", "authorization", "cookie", "password"];
  expect([...new Set(hidden)].toSorted()).toEqual(expected);
});

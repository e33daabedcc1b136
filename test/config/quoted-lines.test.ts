import { describe, expect, test } from "vitest";
import { knownKeys, type KnownKeys } from "../../src/config/schema/known-keys.ts";
import { mayHoldSecret } from "../../src/config/effective/secret-lines.ts";
import { problemsOf, SMALLEST } from "./configuration-file.ts";

const UPSTREAM = "server: { tls: off }\nupstreams: { app: { targets: [LINE] } }\n";

describe("a line with something that may be a secret is not repeated", () => {
  test.each([
    ["a token in a query", UPSTREAM.replace("LINE", '"http://127.0.0.1:80/?token=hunter2"')],
    ["a key in a query", UPSTREAM.replace("LINE", '"http://127.0.0.1:80/?a=1&api_key=hunter2"')],
    ["a password in a URL", UPSTREAM.replace("LINE", '"http://a:hunter2@127.0.0.1:80"')],
    ["a user in a URL", UPSTREAM.replace("LINE", '"http://hunter2@127.0.0.1:80"')],
    ["a key that is not known", `${SMALLEST}passphrase: hunter2\n`],
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

test("a line without one is repeated, though its key is called like one", async () => {
  const text = `${SMALLEST}routes: [{ name: a, upstream: app, auth: non }]\n`;
  const [problem] = await problemsOf(text);
  expect(problem?.source).toContain("auth: non");
});

test("no key of the schema hides its line, but those that hold a secret", () => {
  const names = (known: KnownKeys): string[] =>
    known.names.flatMap((name) => {
      const below = known.below(name);
      return [name, ...(below === undefined ? [] : names(below))];
    });
  const hidden = names(knownKeys()).filter((name) => mayHoldSecret(`${name}: x`));
  // A header of the name authorization holds a token.
  expect([...new Set(hidden)].toSorted()).toEqual(["authorization", "password"]);
});

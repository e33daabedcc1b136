import { describe, expect, onTestFinished, test } from "vitest";
import { ConfigError } from "../../src/core/config-problem.ts";
import { HashingPool } from "../../src/credentials/hashing/hashing-pool.ts";
import { readHtpasswd } from "../../src/credentials/stores/htpasswd.ts";
import { cheapHash, STRANGER } from "./fixture.ts";

/** From the Apache 2.4 documentation, made by `htpasswd -nbB myName myPassword` with cost 5. */
const APACHE = "$2y$05$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC";

/** The problems of a file, each as [line, message]. */
async function problemsOf(content: string | Buffer) {
  try {
    await readHtpasswd(Buffer.from(content), ".htpasswd");
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(({ line, message }) => [line, message]);
  }
  throw new Error("accepted");
}

test("each line is a user without groups, whatever is between the lines", async () => {
  const argon2id = cheapHash("banana");
  const content = `\n# team: sales\nalice:${APACHE}\r\n  bob:${argon2id}  \n\n`;
  const users = await readHtpasswd(Buffer.from(content), ".htpasswd");
  const common = { groups: [], disabled: false };
  expect([...users.values()]).toEqual([
    { name: "alice", password: APACHE, outdated: "bcrypt of cost 5, less than 10", ...common },
    { name: "bob", password: argon2id, outdated: "argon2id with m=64,t=1", ...common },
  ]);
});

test("verifies a hash from Apache's documentation", async () => {
  const pool = new HashingPool({ concurrency: 1, queue: 1 });
  onTestFinished(() => pool.close());
  expect(await pool.verify("myPassword", APACHE, STRANGER)).toBe(true);
  expect(await pool.verify("mypassword", APACHE, STRANGER)).toBe(false);
});

describe("refuses, with the line but without its text:", () => {
  test.each([
    ["SHA-1", "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", /^SHA-1 is not/],
    ["MD5 of Apache", "$apr1$r31.....$HqJZimcKQFAMYayBlzkrA/", /^MD5 is not/],
    ["crypt", "rqXexS6ZhobKA", /in plain text, or a hash of an unknown kind/],
    ["sha512-crypt", "$6$salt$qFmFH.bQmmtXzyBY0s9v7Oicd2z4XSIe", /^sha-crypt/],
    ["plain text", "hunter2hunter2", /in plain text/],
    ["nothing", "", /in plain text/],
    ["bcrypt of cost 3", APACHE.replace("$05$", "$03$"), /^bcrypt: the cost/],
    ["bcrypt of cost 17", APACHE.replace("$05$", "$17$"), /^bcrypt: the cost/],
    ["a field more", `${APACHE}:comment`, /^bcrypt: the form/],
  ])("%s", async (_what, hash, message) => {
    const problems = await problemsOf(`alice:${APACHE}\nbob:${hash}\n`);
    expect(problems).toEqual([[2, expect.stringMatching(message)]]);
    if (hash.length > 10) expect(JSON.stringify(problems)).not.toContain(hash.slice(0, 10));
  });

  test("everything at once", async () => {
    const lines = [`alice:${APACHE}`, "erin", `:${APACHE}`, `a\tb:${APACHE}`, `alice:${APACHE}`];
    const problems = await problemsOf(lines.join("\n"));
    expect(problems.map(([line]) => line)).toEqual([2, 3, 4, 5]);
  });

  test.each([
    ["an empty file", ""],
    ["comments alone", "# alice\n"],
    ["another encoding", Buffer.from(`J\u00f6rg:${APACHE}\n`, "latin1")],
  ])("%s", async (_what, content) => {
    expect(await problemsOf(content)).toEqual([[undefined, expect.any(String)]]);
  });
});

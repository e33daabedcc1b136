import { describe, expect, it } from "vitest";
import { ConfigError } from "../../src/core/config-problem.ts";
import { readUsersFile } from "../../src/credentials/stores/users-file.ts";
import { readUsers } from "../../src/credentials/stores/users-reading.ts";
import { FileContent } from "../../src/lib/files/file-content.ts";
import { cheapHash } from "./fixture.ts";

const HASH = cheapHash("apple");

/** As many users, each on a line of its own after the first. */
function usersOf(count: number, last = ""): Buffer {
  const lines = Array.from(
    { length: count },
    (_, index) => `  user${index}: { password: "${HASH}", groups: [a, b] }\n`,
  );
  return Buffer.from(`users:\n${lines.join("")}${last}`);
}

/** How often the event loop comes round until the work is done: how often requests are answered. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  const counting = new AbortController();
  const count = (): void => {
    turns += 1;
    if (!counting.signal.aborted) setImmediate(count);
  };
  count();
  await work.finally(() => counting.abort());
  return turns;
}

async function problemsOf(content: FileContent): Promise<unknown> {
  return readUsers(content).then(
    () => [],
    (error: unknown) => (error instanceof ConfigError ? error.problems : error),
  );
}

describe("a large users file", () => {
  it("is read as a small one is", async () => {
    const bytes = usersOf(700, `  "Jörg ✓": { password: "${HASH}", disabled: true }\n`);
    expect(await readUsers(contentOf(bytes, "large.yaml"))).toEqual(
      readUsersFile(bytes, "large.yaml"),
    );
  });

  it("does not hold up what else runs", async () => {
    expect(await turnsDuring(readUsers(contentOf(usersOf(2000), "turns.yaml")))).toBeGreaterThan(
      20,
    );
  });

  it("that is invalid is reported with the same positions", async () => {
    const bytes = usersOf(700, "  bob: hunter2\n  carol: { pasword: x }\n  user0: {}\n");
    const problems = await problemsOf(contentOf(bytes, "broken.yaml"));
    expect(problems).toMatchObject([
      { file: "broken.yaml", line: 702, column: 8 },
      { line: 703, column: 3 },
      { line: 703, column: 12 },
      { line: 704, column: 3, message: "this key is there twice, first in line 2" },
    ]);
    expect(JSON.stringify(problems)).not.toContain("hunter2");
  });
});

describe("what was read last", () => {
  it("is not read again while the file holds the same", async () => {
    for (const count of [1, 700]) {
      const file = `same-${count}.yaml`;
      const first = contentOf(usersOf(count), file);
      const users = await readUsers(first);
      expect(await readUsers(first)).toBe(users);
      expect(await readUsers(contentOf(usersOf(count), file, first))).toBe(users);
      expect((await readUsers(contentOf(usersOf(count + 1), file, first))).size).toBe(count + 1);
    }
  });

  it("is reported again if it was invalid, in the name of each file", async () => {
    const bytes = Buffer.from("users: [");
    const first = contentOf(bytes, "one.yaml");
    const told = await problemsOf(first);
    expect(await problemsOf(contentOf(bytes, "one.yaml", first))).toBe(told);
    expect(await problemsOf(contentOf(bytes, "two.yaml"))).toMatchObject([{ file: "two.yaml" }]);
  });
});

/** @param before what the file held before. */
function contentOf(bytes: Buffer, path: string, before?: FileContent): FileContent {
  const stats = { mode: 0o600, uid: 0 };
  return new FileContent({ path, bytes, stats, readAt: 0 }, before?.identity);
}

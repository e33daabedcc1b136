import { describe, expect, it } from "vitest";
import { ConfigError } from "../../../src/core/config-problem.ts";
import { readUsersFile } from "../../../src/credentials/stores/users-file.ts";
import { readUsers } from "../../../src/credentials/stores/users-reading.ts";
import { FileContent } from "../../../src/lib/files/regular-file.ts";
import { cheapHash } from "../../credentials/fixture.ts";

const HASH = cheapHash("apple");

/** A users file with this many users, one per line after the first line. */
function usersOf(count: number, last = ""): Buffer {
  const lines = Array.from(
    { length: count },
    (_, index) => `  user${index}: { password: "${HASH}", groups: [a, b] }\n`,
  );
  return Buffer.from(`users:\n${lines.join("")}${last}`);
}

/** Counts turns of the event loop until the work is done: how often requests get a turn. */
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
  it("is read like a small one", async () => {
    const bytes = usersOf(700, `  "Jörg ✓": { password: "${HASH}", disabled: true }\n`);
    expect(await readUsers(contentOf(bytes, "large.yaml"))).toEqual(
      readUsersFile(bytes, "large.yaml"),
    );
  });

  it("does not block the event loop", async () => {
    expect(await turnsDuring(readUsers(contentOf(usersOf(2000), "turns.yaml")))).toBeGreaterThan(
      20,
    );
  });

  it("reports the same positions if it is invalid", async () => {
    const bytes = usersOf(700, "  bob: hunter2\n  carol: { pasword: x }\n  user0: {}\n");
    const problems = await problemsOf(contentOf(bytes, "broken.yaml"));
    expect(problems).toMatchObject([
      { file: "broken.yaml", line: 702, column: 8 },
      { line: 703, column: 3 },
      { line: 703, column: 12 },
      { line: 704, column: 3, message: "this key appears twice, first in line 2" },
    ]);
    expect(JSON.stringify(problems)).not.toContain("hunter2");
  });
});

describe("the last content", () => {
  it("is not parsed again while the file is unchanged", async () => {
    for (const count of [1, 700]) {
      const file = `same-${count}.yaml`;
      const first = contentOf(usersOf(count), file);
      const users = await readUsers(first);
      expect(await readUsers(first)).toBe(users);
      expect(await readUsers(contentOf(usersOf(count), file, first))).toBe(users);
      expect((await readUsers(contentOf(usersOf(count + 1), file, first))).size).toBe(count + 1);
    }
  });

  it("is reported again for each file if it was invalid", async () => {
    const bytes = Buffer.from("users: [");
    const first = contentOf(bytes, "one.yaml");
    const told = await problemsOf(first);
    expect(await problemsOf(contentOf(bytes, "one.yaml", first))).toBe(told);
    expect(await problemsOf(contentOf(bytes, "two.yaml"))).toMatchObject([{ file: "two.yaml" }]);
  });
});

/** @param before the previous content of the file. */
function contentOf(bytes: Buffer, path: string, before?: FileContent): FileContent {
  const stats = { mode: 0o600, uid: 0, mtimeMs: 0 };
  return new FileContent({ path, bytes, stats, readAt: 0 }, before?.identity);
}

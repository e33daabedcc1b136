import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ConfigError } from "../../src/core/config-problem.ts";
import { followUsers } from "../../src/credentials/stores/file-user-store.ts";
import { readUsers } from "../../src/credentials/stores/users-reading.ts";
import { namedPipe } from "../support/named-pipe.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import type { TemporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { cheapHash, contentOf } from "./fixture.ts";

const HASH = cheapHash("apple");
const OTHER = cheapHash("banana");
/** Of a cheap hash. */
const OUTDATED = "argon2id with m=64,t=1";

function aliceWith(password: string): string {
  return `users:\n  alice: { password: "${password}", groups: [sales] }\n`;
}

async function open(path: string) {
  const log = recordedLog();
  const reloads: boolean[] = [];
  const followed = await followUsers(contentOf(path), readUsers, {
    log,
    reloaded: (problems) => void reloads.push(problems.length === 0),
  });
  onTestFinished(() => followed.close());
  const store = { ...followed, reload: () => followed.reload(contentOf) };
  return { store, log, reloads };
}

/** The problems of a file, each as [line, column]. */
async function problemsOf(directory: TemporaryDirectory, content: string | Buffer) {
  const path = await directory.write("users.yaml", content);
  try {
    await open(path);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems;
  }
  throw new Error("accepted");
}

describe("reading", () => {
  test("users have a name, a hash, and groups, and may be disabled", async () => {
    await using directory = await temporaryDirectory();
    const path = await directory.write(
      "users.yaml",
      `users:\n  alice:\n    password: ${HASH}\n    groups: [sales, admin]\n  bob: { password: "${OTHER}", disabled: true }\n`,
    );
    const { store } = await open(path);
    expect(store.find("alice")).toEqual({
      name: "alice",
      password: HASH,
      outdated: OUTDATED,
      groups: ["sales", "admin"],
      disabled: false,
    });
    expect(store.find("bob")).toEqual({
      name: "bob",
      password: OTHER,
      outdated: OUTDATED,
      groups: [],
      disabled: true,
    });
    expect(store.passwords()).toEqual([HASH, OTHER]);
    for (const name of ["Alice", "", "__proto__", "constructor", "toString"]) {
      expect(store.find(name)).toBeUndefined();
    }
  });

  test("names are exact: two spellings that look alike are two users", async () => {
    await using directory = await temporaryDirectory();
    const composed = "J\u00f6rg";
    const decomposed = composed.normalize("NFD");
    const path = await directory.write(
      "users.yaml",
      `users:\n  ${composed}: { password: "${HASH}" }\n  ${decomposed}: { password: "${OTHER}" }\n  toString: { password: "${HASH}" }\n`,
    );
    const { store } = await open(path);
    expect(store.find(composed)?.password).toBe(HASH);
    expect(store.find(decomposed)?.password).toBe(OTHER);
    expect(store.find("toString")?.password).toBe(HASH);
  });

  test("an explicitly empty list of users is allowed", async () => {
    await using directory = await temporaryDirectory();
    const { store } = await open(await directory.write("users.yaml", "users: {}\n"));
    expect(store.passwords()).toEqual([]);
  });
});

describe("errors at startup are reported with their position", () => {
  test("reports all problems at once", async () => {
    await using directory = await temporaryDirectory();
    const problems = await problemsOf(
      directory,
      [
        "extra: 1",
        "users:",
        `  alice: { password: "${HASH}", disbled: true }`,
        "  bob: hunter2",
        "  carol: { groups: [sales] }",
        `  dora: { password: "${HASH}", groups: ["a,b", 3, "x\\ny", ok] }`,
        `  erin: { password: "${HASH}", disabled: "yes" }`,
        `  fred: { password: "${HASH}", groups: sales }`,
        `  "": { password: "${HASH}" }`,
        `  "tab\\there": { password: "${HASH}" }`,
        "  gina: { password: 12345 }",
      ].join("\n"),
    );
    expect(problems.map(({ line }) => line)).toEqual([1, 3, 4, 5, 6, 6, 6, 7, 8, 9, 10, 11]);
    const column = `  alice: { password: "${HASH}", `.length + 1;
    expect(problems[1]).toMatchObject({ file: join(directory.path, "users.yaml"), column });
  });

  test.each([
    ["plain text", "hunter2-hunter2"],
    ["a plain number", "'4711471147114711'"],
    ["MD5", "5f4dcc3b5aa765d61d8327deb882cf99"],
    ["MD5 crypt", "$apr1$r31.....$HqJZimcKQFAMYayBlzkrA/"],
    ["SHA-1", "'{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g='"],
    ["SHA-1, unquoted", "{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g="],
    ["MySQL's SHA-1, unquoted", "*2470C0C06DEE42FD1618BBB99005ADCA2EC9D1E1"],
    ["a tag", "!hunter2hunter2"],
    ["bcrypt that is too cheap", "$2b$04$HqWuK6/Ng6sg9gQzbLrgb.Tl.ZHfXLhvt/SgVyWhQqgqcZ7ZuUtye"],
    [
      "argon2id that is too dear",
      "$argon2id$v=19$m=9999999,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEg",
    ],
  ])("a password in %s is reported by line, without its text", async (_what, password) => {
    await using directory = await temporaryDirectory();
    const text = `users:\n  alice: { password: "${HASH}" }\n  bob:\n    password: ${password}\n`;
    const problems = await problemsOf(directory, text);
    expect(problems.length).toBeGreaterThan(0);
    expect(problems[0]?.line).toBe(4);
    const secret = /[A-Za-z0-9.]{8,}/g;
    for (const part of password.match(secret) ?? []) {
      if (part === "argon2id") continue;
      expect(JSON.stringify(problems)).not.toContain(part);
    }
    for (const problem of problems) expect(problem).not.toHaveProperty("source");
  });

  test.each([
    ["an empty file", ""],
    ["a comment", "# nobody\n"],
    ["null", "users:\n"],
    ["a list", "users: [alice]\n"],
    ["a text", "alice\n"],
    ["another key", "user: {}\n"],
    ["an open quote", `users:\n  a: { password: "${HASH} }\n`],
    ["a name twice", `users:\n  a: { password: "${HASH}" }\n  a: { password: "${OTHER}" }\n`],
    ["__proto__ as a name", `users:\n  __proto__: { password: "${HASH}" }\n`],
    ["__proto__ as a key", `users:\n  a: { password: "${HASH}", __proto__: {} }\n`],
    ["another encoding", Buffer.from(`users:\n  J\u00f6rg: { password: "${HASH}" }\n`, "latin1")],
  ])("%s", async (_what, content) => {
    await using directory = await temporaryDirectory();
    expect(await problemsOf(directory, content)).not.toEqual([]);
  });

  test("reports a missing file", async () => {
    await using directory = await temporaryDirectory();
    await expect(open(join(directory.path, "users.yaml"))).rejects.toThrow(ConfigError);
  });
});

describe("following changes", () => {
  test("a file replaced by renaming is read again", async () => {
    await using directory = await temporaryDirectory();
    const path = await directory.write("users.yaml", aliceWith(HASH));
    const { store, log, reloads } = await open(path);
    await rename(await directory.write("users.yaml.new", aliceWith(OTHER)), path);
    await until(() => store.find("alice")?.password === OTHER);
    expect(store.passwords()).toEqual([OTHER]);
    expect(log.lines).toMatchObject([{ level: "info", fields: { users: 1 } }]);
    expect(reloads).toEqual([true]);
  });

  test("a file in a Kubernetes volume changes through the link `..data`", async () => {
    await using directory = await temporaryDirectory();
    for (const [version, hash] of [
      ["one", HASH],
      ["two", OTHER],
    ] as const) {
      await mkdir(join(directory.path, `..${version}`));
      await directory.write(join(`..${version}`, "users.yaml"), aliceWith(hash));
    }
    await symlink("..one", join(directory.path, "..data"));
    await symlink("..data/users.yaml", join(directory.path, "users.yaml"));
    const { store } = await open(join(directory.path, "users.yaml"));
    expect(store.find("alice")?.password).toBe(HASH);

    await symlink("..two", join(directory.path, "..data_tmp"));
    await rename(join(directory.path, "..data_tmp"), join(directory.path, "..data"));
    await until(() => store.find("alice")?.password === OTHER);
  });

  test("an invalid file keeps the old users and is reported once, with its position; the next valid one takes effect", async () => {
    await using directory = await temporaryDirectory();
    const path = await directory.write("users.yaml", aliceWith(HASH));
    const { store, log, reloads } = await open(path);
    await writeFile(path, "users:\n  alice: { password: hunter2hunter2 }\n");
    await until(() => reloads.length === 1);
    await store.reload();
    expect(store.find("alice")?.password).toBe(HASH);
    expect(store.passwords()).toEqual([HASH]);
    expect(log.lines).toMatchObject([{ level: "error" }]);
    const told = JSON.stringify(log.lines);
    expect(told).toContain(`${path}:2:22`);
    expect(told).not.toContain("hunter2");

    await writeFile(path, aliceWith(OTHER));
    await until(() => store.find("alice")?.password === OTHER);
    expect(reloads).toEqual([false, true]);
  });

  test("a deleted file keeps the old users", async () => {
    await using directory = await temporaryDirectory();
    const path = await directory.write("users.yaml", aliceWith(HASH));
    const { store, log, reloads } = await open(path);
    await rm(path);
    await until(() => reloads.length === 1);
    expect(store.find("alice")?.password).toBe(HASH);
    expect(log.lines).toMatchObject([{ level: "error" }]);
    await directory.write("users.yaml", aliceWith(OTHER));
    await until(() => store.find("alice")?.password === OTHER);
  });

  test("a pipe in its place blocks nothing, and the old users stay", async () => {
    await using directory = await temporaryDirectory();
    const path = await directory.write("users.yaml", aliceWith(HASH));
    const { store, log, reloads } = await open(path);
    await rename(await namedPipe(join(directory.path, "pipe")), path);
    await store.reload();
    expect(store.find("alice")?.password).toBe(HASH);
    expect(reloads).toContain(false);
    expect(JSON.stringify(log.lines)).toContain(
      `${path}: the users file cannot be read: not a regular`,
    );
  });

  test("of two large contents in quick succession, the later one takes effect", async () => {
    await using directory = await temporaryDirectory();
    const path = await directory.write("users.yaml", aliceWith(HASH));
    const { store } = await open(path);
    const others = Array.from(
      { length: 700 },
      (_, index) => `  u${index}: { password: "${HASH}" }\n`,
    );
    await rename(await directory.write("new", aliceWith(OTHER) + others.join("")), path);
    const larger = store.reload();
    await rename(await directory.write("new", aliceWith(HASH)), path);
    await Promise.all([larger, store.reload()]);
    expect(store.passwords()).toEqual([HASH]);
  });

  test("a read that ends after close is not reported", async () => {
    await using directory = await temporaryDirectory();
    const path = await directory.write("users.yaml", aliceWith(HASH));
    const { store, log, reloads } = await open(path);
    await writeFile(path, aliceWith(OTHER));
    const reload = store.reload();
    const closed = store.close();
    await Promise.all([reload, closed]);
    expect({ lines: log.lines, reloads }).toEqual({ lines: [], reloads: [] });
  });

  test("reload reads at once and ignores unchanged content", async () => {
    await using directory = await temporaryDirectory();
    const path = await directory.write("users.yaml", aliceWith(HASH));
    const { store, reloads } = await open(path);
    await store.reload();
    expect(reloads).toEqual([]);
    await writeFile(path, aliceWith(OTHER));
    await store.reload();
    expect(store.find("alice")?.password).toBe(OTHER);
    expect(reloads).toEqual([true]);
  });
});

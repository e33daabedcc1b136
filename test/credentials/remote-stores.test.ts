import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, onTestFinished } from "vitest";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { cheapHash } from "./fixture.ts";
import { startLoginServer } from "./login-server.ts";
import { userStoreContract } from "./user-store-contract.ts";

describe("sqlite", () => {
  userStoreContract({
    async source() {
      const directory = await temporaryDirectory();
      onTestFinished(() => directory[Symbol.asyncDispose]());
      const path = join(directory.path, "users.db");
      const query = "SELECT hash AS password_hash, groups, disabled FROM users WHERE name = $1";
      return {
        settings: { kind: "sqlite", path, query, timeout: 5_000 },
        async hold(users) {
          await writeFile(path, "");
          using database = new DatabaseSync(path);
          // Each statement would wait for the disk.
          database.exec("PRAGMA synchronous = OFF");
          database.exec("CREATE TABLE users (name TEXT PRIMARY KEY, hash, groups, disabled)");
          const insert = database.prepare("INSERT INTO users VALUES (?, ?, ?, 0)");
          for (const { name, password, groups = [] } of users) {
            insert.run(name, cheapHash(password), JSON.stringify(groups));
          }
        },
        fail: () =>
          writeFile(path, "This is no database, but a text that is long enough. ".repeat(20)),
      };
    },
    hasGroups: true,
    failing: "unavailable",
    counts: false,
    inspects: true,
    oddNames: ["é", "e\u0301", "a:b", "a b", "*", "'", "toString", "__proto__", "%", "$1"],
  });
});

describe.each(["json", "form", "basic"] as const)("http with %s", (format) => {
  userStoreContract({
    async source() {
      const login = await startLoginServer();
      onTestFinished(() => login[Symbol.asyncDispose]());
      return {
        settings: {
          kind: "http",
          url: `${login.url}/${format}`,
          format,
          fields: { username: "user", password: "pass" },
          status: { success: [200], wrong: [401], unknown: [404] },
          subject: "/subject",
          groups: "/groups",
          connections: 4,
          timeout: 5_000,
        },
        async hold(users) {
          login.users = new Map(users.map((user) => [user.name, user]));
          login.broken = false;
        },
        async fail() {
          login.broken = true;
        },
      };
    },
    hasGroups: true,
    failing: "unavailable",
    counts: false,
    inspects: false,
    oddNames: ["é", "e\u0301", "a b", "*", "'", "toString", "__proto__", "alice)(uid=*", "a&b=c"],
  });
});

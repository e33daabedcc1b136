import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { hashSync } from "bcryptjs";
import { describe, onTestFinished } from "vitest";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { cheapHash } from "./fixture.ts";
import { type ContractUser, userStoreContract } from "./user-store-contract.ts";

describe("file", () => {
  userStoreContract({
    async source() {
      const path = join(await directory(), "users.yaml");
      return {
        settings: { kind: "file", path },
        hold: (users) => writeFile(path, usersYaml(users)),
        fail: () => writeFile(path, "users: [hunter2hunter2]\n"),
      };
    },
    hasGroups: true,
    failing: "as before",
    counts: true,
    inspects: true,
    oddNames: ["é", "e\u0301", "a:b", "a b", "*", "'", "toString", "alice)(uid=*"],
  });
});

async function directory(): Promise<string> {
  const made = await temporaryDirectory();
  onTestFinished(() => made[Symbol.asyncDispose]());
  return made.path;
}

/** JSON is YAML. */
function usersYaml(users: readonly ContractUser[]): string {
  const entries = users.map(({ name, password, groups = [] }) => [
    name,
    { password: cheapHash(password), groups },
  ]);
  return JSON.stringify({ users: Object.fromEntries(entries) });
}

describe("htpasswd", () => {
  userStoreContract({
    async source() {
      const path = join(await directory(), ".htpasswd");
      return {
        settings: { kind: "htpasswd", path },
        hold: (users) => writeFile(path, htpasswdOf(users)),
        fail: () => writeFile(path, "alice:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n"),
      };
    },
    hasGroups: false,
    failing: "as before",
    counts: true,
    inspects: true,
    oddNames: ["é", "e\u0301", "a b", "*", "'", "toString", "__proto__", "alice)(uid=*"],
  });
});

/** Like the output of `htpasswd -B`, with comments and Windows line endings. */
function htpasswdOf(users: readonly ContractUser[]): string {
  const lines = users.map(({ name, password }) => {
    const hash = hashSync(password, 4).replace(/^\$2b/, "$2y");
    return `${name}:${hash}\r\n`;
  });
  return `# team\n\n${lines.join("")}`;
}

import { isUtf8 } from "node:buffer";
import { ConfigError, type ConfigProblem } from "../../core/config-problem.ts";
import type { UserRecord } from "./hash-store.ts";
import {
  parsePositionedYaml,
  type PositionedYaml,
  type YamlPath,
} from "../../lib/files/positioned-yaml.ts";
import { readPasswordHash } from "../hashing/password-hash.ts";

const CONTROL = /\p{Cc}/u;

/**
 * Reads a users file in UTF-8. Names are kept as written, without Unicode normalisation: two spellings that look alike
 * are two users.
 *
 * @param file the file name for problems.
 * @throws ConfigError with all problems and their positions, but without the lines, which may contain secrets.
 */
export function readUsersFile(bytes: Buffer, file: string): ReadonlyMap<string, UserRecord> {
  if (!isUtf8(bytes)) throw new ConfigError([{ file, message: "the file is not UTF-8" }]);
  const yaml = parsePositionedYaml(bytes.toString("utf8"), file);
  const problems: ConfigProblem[] = yaml.problems.map(({ line, column, message }) => {
    return { file, line, column, message };
  });
  const users = new Map<string, UserRecord>();
  if (yaml.value !== undefined) {
    const found = new ProblemCollector(yaml, file, problems);
    for (const user of readDocument(yaml.value, found)) users.set(user.name, user);
  } else if (problems.length === 0) {
    problems.push({ file, message: "the file is empty" });
  }
  if (problems.length > 0) throw new ConfigError(problems.toSorted(byPlace));
  return users;
}

/** A line of an htpasswd file: a name, a colon, and a hash. */
const HTPASSWD = /^[^:\s]+:(?:\$(?:2[abxy]|apr1|5|6)\$|\{SHA\})/;

function readDocument(value: unknown, found: ProblemCollector): UserRecord[] {
  if (typeof value === "string" && HTPASSWD.test(value)) {
    found.add([], "value", "this looks like an htpasswd file: use kind: htpasswd");
    return [];
  }
  const members = found.members(value, [], "the file", ["users"]);
  if (members === undefined) return [];
  if (!members.has("users")) {
    found.add([], "value", 'the key "users" is missing');
    return [];
  }
  const users = found.members(members.get("users"), ["users"], '"users"') ?? [];
  return Array.from(users, ([name, user]) => readUser(name, user, found));
}

function readUser(name: string, value: unknown, found: ProblemCollector): UserRecord {
  const path = ["users", name];
  if (name === "") found.add(path, "key", "a user's name must not be empty");
  if (CONTROL.test(name)) {
    found.add(path, "key", "a user's name must not hold control characters");
  }
  const members = found.members(value, path, "a user", ["password", "groups", "disabled"]);
  return {
    name,
    ...(members === undefined ? NO_HASH : readPassword(members.get("password"), path, found)),
    groups: readGroups(members?.get("groups"), [...path, "groups"], found),
    disabled: readDisabled(members?.get("disabled"), [...path, "disabled"], found),
  };
}

type ReadHash = Pick<UserRecord, "password" | "outdated">;
const NO_HASH: ReadHash = { password: "", outdated: undefined };

function readPassword(value: unknown, user: YamlPath, found: ProblemCollector): ReadHash {
  if (value === undefined) {
    found.add(user, "key", "this user has no password");
    return NO_HASH;
  }
  const path = [...user, "password"];
  if (typeof value !== "string") {
    found.add(path, "value", "a password must be a hash, as `sallyport hash-password` prints it");
    return NO_HASH;
  }
  const read = readPasswordHash(value);
  if (!("refused" in read)) return { password: value, outdated: read.outdated };
  found.add(path, "value", read.refused);
  return NO_HASH;
}

function readGroups(value: unknown, path: YamlPath, found: ProblemCollector): readonly string[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) {
    found.add(path, "value", "groups must be a list");
    return [];
  }
  const groups: string[] = [];
  for (const [index, group] of value.entries()) {
    if (typeof group !== "string" || group === "") {
      found.add([...path, index], "value", "the name of a group must be a text");
    } else if (group.includes(",") || CONTROL.test(group)) {
      // Groups reach the backend as one comma-separated header.
      const message = "the name of a group must not hold commas or control characters";
      found.add([...path, index], "value", message);
    } else {
      groups.push(group);
    }
  }
  return groups;
}

function readDisabled(value: unknown, path: YamlPath, found: ProblemCollector): boolean {
  if (value === undefined || typeof value === "boolean") return value ?? false;
  found.add(path, "value", "disabled must be true or false");
  return true;
}

function byPlace(a: ConfigProblem, b: ConfigProblem): number {
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}

/** Collects configuration problems with their positions. */
class ProblemCollector {
  readonly #yaml: PositionedYaml;
  readonly #file: string;
  readonly #problems: ConfigProblem[];

  constructor(yaml: PositionedYaml, file: string, problems: ConfigProblem[]) {
    this.#yaml = yaml;
    this.#file = file;
    this.#problems = problems;
  }

  add(path: YamlPath, of: "key" | "value", message: string): void {
    const { line, column } = this.#yaml.positionOf(path, of);
    this.#problems.push({ file: this.#file, line, column, message });
  }

  /**
   * Returns the members of a mapping and reports unknown keys. Reports anything that is not a mapping and returns
   * undefined.
   */
  members(
    value: unknown,
    path: YamlPath,
    what: string,
    known?: readonly string[],
  ): Map<string, unknown> | undefined {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      this.add(path, "value", `${what} must be a mapping`);
      return undefined;
    }
    // The parser has already reported `__proto__`.
    const members = Object.entries(value).filter(([key]) => key !== "__proto__");
    for (const [key] of members) {
      if (known?.includes(key) === false) {
        this.add([...path, key], "key", `this key is unknown; known are ${known.join(", ")}`);
      }
    }
    return new Map(members);
  }
}

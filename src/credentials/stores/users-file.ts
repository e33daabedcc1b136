import { type ProblemCollector, readPositioned } from "../../core/positioned-file.ts";
import type { UserRecord } from "./hash-store.ts";
import type { YamlPath } from "../../lib/files/positioned-yaml.ts";
import { readPasswordHash } from "../hashing/password-hash.ts";
import { nameFault } from "./htpasswd.ts";

/**
 * Reads a users file in UTF-8. Names are kept as written, without Unicode normalisation: two spellings that look alike
 * are two users.
 *
 * @param file the file name for problems.
 * @throws ConfigError with all problems and their positions, but without the lines, which may contain secrets.
 */
export function readUsersFile(bytes: Buffer, file: string): ReadonlyMap<string, UserRecord> {
  const users = new Map<string, UserRecord>();
  readPositioned(bytes, file, (value, found) => {
    for (const user of readDocument(value, found)) users.set(user.name, user);
  });
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
  const fault = nameFault(name);
  if (fault !== undefined) found.add(path, "key", fault);
  const members = found.members(value, path, "a user", ["password", "groups", "disabled"]);
  return {
    name,
    ...(members === undefined ? NO_HASH : readPassword(members.get("password"), path, found)),
    groups: found.groups(members?.get("groups"), [...path, "groups"]),
    disabled: found.disabled(members?.get("disabled"), [...path, "disabled"]),
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

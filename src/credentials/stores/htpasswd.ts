import { isUtf8 } from "node:buffer";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ConfigError, type ConfigProblem } from "../../core/config-problem.ts";
import { readPasswordHash } from "../hashing/password-hash.ts";
import type { UserRecord } from "./hash-store.ts";

const CONTROL = /\p{Cc}/u;

/** Lines parsed before other requests get a turn. A file of 8 MiB has about 110,000 lines. */
const LINES_AT_ONCE = 2_000;

/**
 * Reads a file that Apache's htpasswd wrote, as nginx and others do: `name:hash` on each line, in UTF-8. Ignores empty
 * lines and lines that begin with `#`. Accepts the same kinds of hashes as a users file, and bcrypt of any cost from 4,
 * since htpasswd's default is 5. The users have no groups.
 *
 * @param file the file name for problems.
 * @throws ConfigError with all problems and their positions, but without the lines, which may contain secrets.
 */
export async function readHtpasswd(
  bytes: Buffer,
  file: string,
): Promise<ReadonlyMap<string, UserRecord>> {
  if (!isUtf8(bytes)) throw new ConfigError([{ file, message: "the file is not UTF-8" }]);
  const users = new Map<string, UserRecord>();
  const problems: ConfigProblem[] = [];
  for (const [index, text] of bytes.toString("utf8").split("\n").entries()) {
    if ((index + 1) % LINES_AT_ONCE === 0) await nextTurn();
    const written = text.trim();
    if (written === "" || written.startsWith("#")) continue;
    const colon = written.indexOf(":");
    const name = written.slice(0, Math.max(0, colon));
    const password = written.slice(colon + 1);
    const read = readPasswordHash(password, { weak: true });
    const refused = "refused" in read ? read.refused : undefined;
    const again = users.has(name) ? "this user is listed twice" : undefined;
    const message = colon < 0 ? "a line must be NAME:HASH" : (nameFault(name) ?? again ?? refused);
    if (message !== undefined) problems.push({ file, line: index + 1, message });
    const outdated = "refused" in read ? undefined : read.outdated;
    users.set(name, { name, password, outdated, groups: [], disabled: false });
  }
  if (problems.length > 0) throw new ConfigError(problems);
  // htpasswd truncates the file for a moment while it writes.
  if (users.size === 0) throw new ConfigError([{ file, message: "the file is empty" }]);
  return users;
}

/** Returns what is wrong with the name of a user in a file; undefined if nothing is. */
export function nameFault(name: string): string | undefined {
  if (name === "") return "a user's name must not be empty";
  return CONTROL.test(name) ? "a user's name must not hold control characters" : undefined;
}

import { ConfigError } from "../core/config-problem.ts";
import type { UserRecord } from "../core/user-store.ts";
import { fingerprint } from "../lib/fingerprint.ts";
import { readRegularFile, whyUnread } from "../lib/regular-file.ts";
import { readUsersFile } from "./users-file.ts";
import { readUsersInThread } from "./users-thread.ts";

type Users = ReadonlyMap<string, UserRecord>;

/** In bytes: some 50,000 users, for which about 700 MiB are needed while they are read. */
export const LARGEST_USERS_FILE = 8 * 1024 ** 2;

/** More bytes, some 500 users, would hold up the requests for more than 50 ms. */
const AT_ONCE_BYTES = 64 * 1024;

/** Files whose last reading is kept. */
const KEPT = 64;

interface Reading {
  readonly print: string;
  readonly users: Promise<Users>;
}

/**
 * The last reading of each file, also one that found it broken. Kept for the whole program: a reload looks into the file,
 * and its store reads it, too.
 */
const readings = new Map<string, Reading>();

/**
 * Reads the bytes of a users file as `readUsersFile` does, a large one in a thread of its own. What was read last of this
 * file is not read again.
 *
 * @param file the name to tell in problems.
 */
export function usersIn(bytes: Buffer, file: string): Promise<Users> {
  const print = fingerprint(bytes);
  const known = readings.get(file);
  if (known?.print === print) return known.users;
  const users = read(bytes, file);
  readings.delete(file);
  readings.set(file, { print, users });
  for (const oldest of [...readings.keys()].slice(0, -KEPT)) readings.delete(oldest);
  users.catch((error: unknown) => {
    // A thread that could not be had, say: the next time it may be.
    const failed = !(error instanceof ConfigError) && readings.get(file)?.users === users;
    if (failed) readings.delete(file);
  });
  return users;
}

async function read(bytes: Buffer, file: string): Promise<Users> {
  return bytes.length > AT_ONCE_BYTES ? readUsersInThread(bytes, file) : readUsersFile(bytes, file);
}

/** What a users file holds. @throws ConfigError when it cannot be read. */
export async function usersBytes(file: string): Promise<Buffer> {
  try {
    return await readRegularFile(file, LARGEST_USERS_FILE);
  } catch (error) {
    throw usersUnread(file, error);
  }
}

/** What is told of a users file that cannot be read. */
export function usersUnread(file: string, error: unknown): ConfigError {
  return new ConfigError([{ file, message: `the users file cannot be read: ${whyUnread(error)}` }]);
}

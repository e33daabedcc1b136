import type { Log } from "../../../core/log.ts";

/** What Sallyport exchanges with a remote store about a user: a name, and groups. */

const LONGEST_BYTES = 1024;
const CONTROL = /\p{Cc}/u;
/** A token with more groups would be too large for any server to accept. */
const MOST_GROUPS = 1_000;

/**
 * Reports whether a user of a remote store can have this name. Stores are not asked about other names: some servers
 * reject control characters and lone surrogates, and others misread them.
 */
export function isAskable(username: string): boolean {
  return (
    username !== "" &&
    username.length <= LONGEST_BYTES &&
    Buffer.byteLength(username) <= LONGEST_BYTES &&
    username.isWellFormed() &&
    !CONTROL.test(username)
  );
}

/**
 * Returns the groups that can be sent to a backend, without duplicates, and logs how many are left out. A backend
 * receives them in one comma-separated header.
 */
export function sendableGroups(
  groups: readonly unknown[],
  user: string,
  store: string,
  log: Log,
): readonly string[] {
  const sendable = new Set<string>();
  for (const group of groups) {
    const fits = typeof group === "string" && group !== "" && !/,/.test(group);
    if (fits && group.isWellFormed() && !CONTROL.test(group) && sendable.size < MOST_GROUPS) {
      sendable.add(group);
    }
  }
  const leftOut = new Set(groups).size - sendable.size;
  if (leftOut > 0) {
    log.warn("groups of a user were left out: they cannot be sent", {
      store,
      user,
      groups: leftOut,
    });
  }
  return [...sendable];
}

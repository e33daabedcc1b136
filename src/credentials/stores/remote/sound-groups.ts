const CONTROL = /\p{Cc}/u;
/** A token with more groups would be too large for any server to accept. */
const MOST_GROUPS = 1_000;

/**
 * Returns the groups that can be sent to a backend, without duplicates, and the number of those left out. A backend
 * receives them in one comma-separated header.
 */
export function soundGroups(groups: readonly unknown[]): {
  readonly groups: readonly string[];
  readonly leftOut: number;
} {
  const sound = new Set<string>();
  for (const group of groups) {
    const fits = typeof group === "string" && group !== "" && !/,/.test(group);
    if (fits && group.isWellFormed() && !CONTROL.test(group) && sound.size < MOST_GROUPS) {
      sound.add(group);
    }
  }
  return { groups: [...sound], leftOut: new Set(groups).size - sound.size };
}

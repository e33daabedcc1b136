const CONTROL = /\p{Cc}/u;
/** More do not fit into a token that anybody accepts. */
const MOST_GROUPS = 1_000;

/** The groups that can reach a backend, which gets them as one header, separated by commas; each once. */
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

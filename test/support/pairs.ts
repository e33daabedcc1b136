/** Converts a list of alternating names and values to pairs. */
export function pairsOf(list: readonly string[]): [name: string, value: string][] {
  return list.flatMap((name, i): [string, string][] =>
    i % 2 === 0 ? [[name, list[i + 1] ?? ""]] : [],
  );
}

/** Returns all values of a name in order. @param name in lower case. */
export function valuesIn(list: readonly string[], name: string): string[] {
  return pairsOf(list)
    .filter(([each]) => each.toLowerCase() === name)
    .map(([, value]) => value);
}

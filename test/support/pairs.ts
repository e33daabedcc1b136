/** Names and values that alternate in a list, as pairs. */
export function pairsOf(list: readonly string[]): [name: string, value: string][] {
  return list.flatMap((name, i): [string, string][] =>
    i % 2 === 0 ? [[name, list[i + 1] ?? ""]] : [],
  );
}

/** All values of a name, given in lower case, in order. */
export function valuesIn(list: readonly string[], name: string): string[] {
  return pairsOf(list)
    .filter(([each]) => each.toLowerCase() === name)
    .map(([, value]) => value);
}

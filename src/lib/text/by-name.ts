/** Limits on the cache: strangers choose the names. */
const MAX_NAMES = 1024;
const MAX_LENGTH = 64;

/** Caches the results of a pure function of names, such as those of header fields, of which there are few. */
export function rememberedByName<Made>(make: (name: string) => Made): (name: string) => Made {
  const known = new Map<string, Made>();
  return (name) => {
    const before = known.get(name);
    if (before !== undefined) return before;
    const made = make(name);
    if (name.length > MAX_LENGTH) return made;
    // Else the first thousand names of a stranger would stay, and the usual ones be worked out for every request.
    if (known.size >= MAX_NAMES) known.clear();
    known.set(name, made);
    return made;
  };
}

/** Returns a name in lower case. Returns the same string each time, which is faster to compare and to look up. */
export const lowerCase = rememberedByName((name) => name.toLowerCase());

/** Bounds on what is remembered: strangers choose the names. */
const MAX_NAMES = 1024;
const MAX_LENGTH = 64;

/** Remembers what a pure function makes of names such as those of header fields, of which there are few. */
export function rememberedByName<Made>(make: (name: string) => Made): (name: string) => Made {
  const known = new Map<string, Made>();
  return (name) => {
    const before = known.get(name);
    if (before !== undefined) return before;
    const made = make(name);
    if (known.size < MAX_NAMES && name.length <= MAX_LENGTH) known.set(name, made);
    return made;
  };
}

/** A name in lower case. Every message has the same ones: one string for each is compared and looked up faster. */
export const lowerCase = rememberedByName((name) => name.toLowerCase());

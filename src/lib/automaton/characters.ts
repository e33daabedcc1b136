/** The size of the alphabet of automata: the 128 ASCII characters, and one that represents all others. */
export const CHARACTERS = 129;
const ANOTHER = CHARACTERS - 1;

/** A set of characters: 1 at the index of each member, else 0. */
export type CharacterSet = Uint8Array;

/** Returns the index of a UTF-16 code unit in a set. */
export function characterOf(code: number): number {
  return code < ANOTHER ? code : ANOTHER;
}

export function setOf(characters: string): CharacterSet {
  const set = new Uint8Array(CHARACTERS);
  for (const character of characters) set[character.charCodeAt(0)] = 1;
  return set;
}

export function rangeOf(first: string, last: string): CharacterSet {
  return new Uint8Array(CHARACTERS).fill(1, first.charCodeAt(0), last.charCodeAt(0) + 1);
}

export function unionOf(sets: readonly CharacterSet[]): CharacterSet {
  return new Uint8Array(CHARACTERS).map((_, index) =>
    sets.some((set) => set[index] === 1) ? 1 : 0,
  );
}

export function complementOf(set: CharacterSet): CharacterSet {
  return set.map((member) => 1 - member);
}

export const EVERY_CHARACTER: CharacterSet = new Uint8Array(CHARACTERS).fill(1);
export const DIGITS = rangeOf("0", "9");
export const WORD_CHARACTERS = unionOf([rangeOf("a", "z"), rangeOf("A", "Z"), DIGITS, setOf("_")]);

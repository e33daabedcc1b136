import fc from "fast-check";

/** The elements of lists, parameters, quotes, comments and paths. */
const UNITS = [
  ...[", ", ",", ",,", "; ", ";", ";a", "; a", "; a=b", ';a="b"', '; a="', ";a=b=c", "=", "a=b&"],
  ...[" ", "\t", " \t", "  a", "(", "((", ")", "[", "{", "<", ">", ", <x>", '"', '\\"', "\\", "'"],
  ...["a", "ab", "0", "9", "a,", "a, b, ", "a.", ".", "..", "-", "_", ":", "::", "/", "//", "/a"],
  ...["%", "%25", "%2", "%41", "+", "*", "~", "\u00e9", "\u00ff", "close, ", "keep-alive,", "a;b,"],
];
const STARTS = ["", "", "a", "<x>", '"', "a/b", "a=b", "0", "bytes=", "for=", "00-", "Bearer "];
const ENDS = ["", "", ' "', '"', ";", " x", ",", "=", "\\", "!", "\u00ff"];

/** Generates numbers that are about equally often small, medium or large. */
export function count(most: number): fc.Arbitrary<number> {
  return fc.oneof(
    fc.integer({ min: 1, max: Math.min(most, 40) }),
    fc.integer({ min: 1, max: Math.min(most, 300) }),
    fc.integer({ min: 1, max: most }),
  );
}

/** Generates a repeated piece, with a beginning and an end that may not fit it. */
export function run(mostBytes: number): fc.Arbitrary<string> {
  return fc
    .record({
      start: fc.constantFrom(...STARTS),
      units: fc.array(fc.constantFrom(...UNITS), { minLength: 1, maxLength: 2 }),
      times: count(mostBytes),
      end: fc.constantFrom(...ENDS),
    })
    .map(({ start, units, times, end }) => {
      const unit = units.join("");
      return start + unit.repeat(Math.min(times, Math.floor(mostBytes / unit.length))) + end;
    });
}

/** How the values of many fields differ. */
const DIFFERENCES = {
  none: () => "",
  value: (i: number) => `x-${i}`,
  list: (i: number) => Array.from({ length: 9 }, (_, j) => `n${i}-${j}`).join(","),
} as const;

/** Generates many fields, with the same or different names and values. */
export function manyFields(
  names: readonly string[],
  most: number,
  mostBytes: number,
): fc.Arbitrary<string[]> {
  return fc
    .record({
      name: fc.constantFrom(...names),
      numbered: fc.nat(3).map((turn) => turn === 3),
      value: fc.oneof(fc.constantFrom("", "a", "close, x", "keep-alive", "a, b, c"), run(40)),
      difference: fc.constantFrom("none", "value", "list"),
      times: count(most),
    })
    .map(({ name, numbered, value, difference, times }) => {
      const fields: string[] = [];
      let bytes = 0;
      for (let i = 0; i < times; i += 1) {
        const key = numbered ? `${name}-${i}` : name;
        const other = DIFFERENCES[difference](i);
        const field = `${key}: ${other === "" ? value : `${other}, ${value}`}`;
        bytes += field.length + 2;
        if (bytes > mostBytes) break;
        fields.push(field);
      }
      return fields;
    });
}

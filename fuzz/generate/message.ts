import fc from "fast-check";

/** The parts of a well-formed request, which may be damaged afterwards. Texts are bytes in Latin-1. */
export interface Draft {
  readonly line: string;
  readonly fields: readonly string[];
  readonly body: string;
}

interface Line {
  readonly text: string;
  readonly end: string;
}

type Change = (lines: readonly Line[]) => readonly Line[];

/** Line ends that parsers disagree about. */
const LINE_ENDS = [
  "\n",
  "\r",
  "\r\r\n",
  "\n\r\n",
  "\r\n\r\n",
  "\r\n ",
  "\r\n\t",
  " \r\n",
  "\0\r\n",
];

/** A position in something whose length is not known yet, in parts of 10,000. */
const place = fc.nat(9_999);

function placed(at: number, length: number): number {
  return Math.floor((at * length) / 10_000);
}

/** Generates a change of a head's lines: one is doubled, removed, inserted, replaced, moved, or gets another line end. */
function changes(fields: fc.Arbitrary<string>): fc.Arbitrary<Change> {
  const put =
    (at: number, text: string, instead: number): Change =>
    (lines) =>
      lines.toSpliced(1 + placed(at, lines.length), instead, { text, end: "\r\n" });
  const inserted = fc.tuple(place, fields).map(([at, text]) => put(at, text, 0));
  return fc.oneof(
    { arbitrary: inserted, weight: 4 },
    fc.tuple(place, fields).map(([at, text]) => put(at, text, 1)),
    place.map((at): Change => (lines) => {
      const index = placed(at, lines.length);
      return lines.toSpliced(index, 0, ...lines.slice(index, index + 1));
    }),
    place.map(
      (at): Change =>
        (lines) =>
          lines.toSpliced(placed(at, lines.length), 1),
    ),
    fc.tuple(place, place).map(([from, to]): Change => (lines) => {
      const moved = lines.slice(placed(from, lines.length), placed(from, lines.length) + 1);
      const others = lines.filter((line) => !moved.includes(line));
      return others.toSpliced(1 + placed(to, others.length), 0, ...moved);
    }),
    fc.tuple(place, fc.constantFrom(...LINE_ENDS)).map(([at, end]): Change => (lines) => {
      const index = placed(at, lines.length);
      return lines.map((line, i) => (i === index ? { ...line, end } : line));
    }),
  );
}

/**
 * Generates the bytes of requests: two in three are unchanged drafts, the others are changed.
 * @param fields lines to insert.
 */
export function messages(
  drafts: fc.Arbitrary<Draft>,
  fields: fc.Arbitrary<string>,
): fc.Arbitrary<string> {
  const several = fc.oneof(
    { arbitrary: fc.constant<Change[]>([]), weight: 2 },
    fc.array(changes(fields), { minLength: 1, maxLength: 2 }),
  );
  return fc.tuple(drafts, several).map(([{ line, fields: given, body }, all]) => {
    let lines: readonly Line[] = [line, ...given].map((text) => ({ text, end: "\r\n" }));
    for (const change of all) lines = change(lines);
    return `${lines.map(({ text, end }) => text + end).join("")}\r\n${body}`;
  });
}

const SPLICED = [
  ...[
    "",
    "\r",
    "\n",
    "\0",
    "\r\n",
    "\r\n\r\n",
    "\n\n",
    " ",
    "\t",
    ":",
    ",",
    ";",
    "\u00ff",
    "\u0080",
  ],
  ...["0", "1", "a", "%", "/", "-", "+", "0\r\n\r\n", "\r\n0\r\n\r\n", "GET /admin HTTP/1.1\r\n"],
];

/** Replaces a few bytes anywhere. */
export const splices: fc.Arbitrary<(text: string) => string> = fc
  .tuple(place, fc.nat(4), fc.constantFrom(...SPLICED))
  .map(([at, cut, put]) => (text: string) => {
    const from = placed(at, text.length + 1);
    return text.slice(0, from) + put + text.slice(from + cut);
  });

/** Cuts a text into pieces at a few places. */
export const cuts: fc.Arbitrary<(text: string) => string[]> = fc
  .array(place, { maxLength: 4 })
  .map((places) => (text: string) => {
    const offsets = places.map((at) => placed(at, text.length)).toSorted((a, b) => a - b);
    return [0, ...offsets]
      .map((from, i) => text.slice(from, offsets[i] ?? text.length))
      .filter((piece) => piece !== "");
  });

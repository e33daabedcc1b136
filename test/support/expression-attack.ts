/**
 * Attacks a regular expression with texts that are made from it: each part that may repeat without a narrow limit is
 * repeated a few thousand times, after what must come before it, and before something that does not fit. V8 says whether
 * that takes more than linear time, so nothing is reported that is harmless.
 */

/** The parts of an expression, as far as texts are made from them: assertions and references match the empty text. */
type Part =
  | { readonly kind: "set"; readonly source: string }
  | { readonly kind: "sequence"; readonly parts: readonly Part[] }
  | { readonly kind: "choice"; readonly parts: readonly Part[] }
  | { readonly kind: "repeat"; readonly part: Part; readonly min: number; readonly max: number };

const EMPTY: Part = { kind: "sequence", parts: [] };
const TOKEN =
  /\\(?:[pP]\{[^}]*\}|x[\da-fA-F]{2}|u[\da-fA-F]{4}|.)|\[(?:\\.|[^\]\\])*\]|\((?:\?(?:[:=!]|<[=!]|<\w+>))?|[*+?]|\{\d+(?:,\d*)?\}|./gsu;
const ASSERTION = /^(?:[$^]|\\[bB\d])$/;

class Parser {
  readonly #tokens: readonly string[];
  #at = 0;

  constructor(source: string) {
    this.#tokens = source.match(TOKEN) ?? [];
  }

  choice(): Part {
    const options = [this.#sequence()];
    while (this.#next() === "|") {
      this.#at += 1;
      options.push(this.#sequence());
    }
    return { kind: "choice", parts: options };
  }

  #next(): string | undefined {
    return this.#tokens[this.#at];
  }

  #sequence(): Part {
    const parts: Part[] = [];
    for (let token = this.#next(); token !== undefined; token = this.#next()) {
      if (token === "|" || token === ")") break;
      this.#at += 1;
      const part = this.#atom(token);
      const [min, max] = limitsOf(this.#next());
      if (min !== undefined && max !== undefined) {
        this.#at += 1;
        // A lazy part takes as long.
        if (this.#next() === "?") this.#at += 1;
        parts.push({ kind: "repeat", part, min, max });
      } else parts.push(part);
    }
    return { kind: "sequence", parts };
  }

  #atom(token: string): Part {
    if (!token.startsWith("("))
      return ASSERTION.test(token) ? EMPTY : { kind: "set", source: token };
    const part = this.choice();
    this.#at += 1;
    return /^\(\?<?[=!]/.test(token) ? EMPTY : part;
  }
}

function limitsOf(token = ""): readonly [min?: number, max?: number] {
  if (token === "*") return [0, Infinity];
  if (token === "+") return [1, Infinity];
  if (token === "?") return [0, 1];
  const [, min, comma, max] = /^\{(\d+)(,)?(\d*)\}$/.exec(token) ?? [];
  if (min === undefined) return [];
  return [Number(min), comma === undefined ? Number(min) : max === "" ? Infinity : Number(max)];
}

/** A part that repeats, the beginnings that lead to it, and texts that it repeats. */
interface Place {
  readonly beginnings: readonly string[];
  readonly units: readonly string[];
}

/** A part with a lower limit repeats too little to take long. */
const MANY = 32;
const MOST_TEXTS = 16;
const MOST_BEGINNINGS = 4;

/** Makes texts from the parts of an expression. */
class Texts {
  readonly #membersOf = new Map<string, readonly string[]>();
  /** One character of each kind: those of a kind are in the same sets. */
  readonly #kinds: readonly string[];

  constructor(whole: Part, flags: string) {
    const sets = [...sourcesIn(whole)].map(
      (source) => [source, new RegExp(`^${source}$`, flags.replaceAll(/[gy]/g, ""))] as const,
    );
    const kinds = new Map<string, string>();
    for (const character of CHARACTERS) {
      const kind = sets.map(([, set]) => Number(set.test(character))).join("");
      if (!kinds.has(kind)) kinds.set(kind, character);
    }
    this.#kinds = [...kinds.values()];
    for (const [source, set] of sets) {
      this.#membersOf.set(
        source,
        this.#kinds.filter((character) => set.test(character)),
      );
    }
  }

  /** Characters that are not in these texts come first: they are the likeliest to end what matches. */
  endings(units: readonly string[]): string[] {
    const inside = (kind: string): number => Number(units.includes(kind));
    return ["", ...this.#kinds.toSorted((one, other) => inside(one) - inside(other)).slice(0, 3)];
  }

  /** Texts that a part matches: the shortest first, and then with one part of it varied at a time. */
  of(part: Part): readonly string[] {
    if (part.kind === "set") return this.#membersOf.get(part.source) ?? [];
    if (part.kind === "choice")
      return part.parts.flatMap((each) => this.of(each)).slice(0, MOST_TEXTS);
    if (part.kind === "sequence") return this.#joined(part.parts);
    const texts = this.of(part.part);
    return part.min === 0 ? ["", ...texts] : texts.map((text) => text.repeat(part.min));
  }

  *places(part: Part, beginnings: readonly string[] = [""]): Iterable<Place> {
    if (part.kind === "set") return;
    if (part.kind === "repeat") {
      const units = this.of(part.part).filter((text) => text !== "");
      if (part.max >= MANY) yield { beginnings, units };
      yield* this.places(part.part, beginnings);
      return;
    }
    for (const [at, each] of part.parts.entries()) {
      const before = part.kind === "choice" ? [""] : this.#joined(part.parts.slice(0, at));
      const all = beginnings.flatMap((start) => before.map((text) => start + text));
      yield* this.places(each, all.slice(0, MOST_BEGINNINGS));
    }
  }

  #joined(parts: readonly Part[]): readonly string[] {
    const texts = parts.map((each) => this.of(each));
    if (texts.some((each) => each.length === 0)) return [];
    const shortest = texts.map(([first = ""]) => first);
    const varied = texts.flatMap((each, at) =>
      each.slice(1).map((text) => shortest.with(at, text).join("")),
    );
    return [shortest.join(""), ...varied].slice(0, MOST_TEXTS);
  }
}

const CHARACTERS = [
  // These stand for their kinds in what is reported.
  ...Array.from("ab019 /.-_%:;,=\"'\\\n\r\t\0"),
  ...Array.from({ length: 0xff }, (_, code) => String.fromCharCode(code)),
  ...["\u2028", "\u202e", "\ufeff", "\ud800"],
];

function* sourcesIn(part: Part): Iterable<string> {
  if (part.kind === "set") yield part.source;
  else if (part.kind === "repeat") yield* sourcesIn(part.part);
  else for (const each of part.parts) yield* sourcesIn(each);
}

/** How often a unit is repeated: slowly more at first, so that exponential time is noticed before it is endless. */
const TIMES = [24, 30, 38, 48, 60, 75, 94, 120, 180, 400, 4_000];
const MOST_CHARACTERS = 16_000;
/** In milliseconds. In linear time, the longest text takes a fraction of this; in quadratic time a multiple. */
const SUSPICIOUS_MS = 1.5;

/** Returns the beginning of a text for which an expression takes more than linear time; undefined if none is found. */
export function slowText({ source, flags }: RegExp): string | undefined {
  const whole = new Parser(source).choice();
  const texts = new Texts(whole, flags);
  const expression = new RegExp(source, flags);
  for (const { beginnings, units } of texts.places(whole)) {
    const first = beginnings[0] ?? "";
    // An expression may begin anew inside of what it repeats.
    const repeated = new Set([...units, ...units.map((unit) => first + unit)]);
    for (const unit of repeated) {
      for (const start of new Set(["", ...beginnings])) {
        for (const end of texts.endings(units)) {
          if (isSlow(expression, start, unit, end))
            return JSON.stringify(`${start}${unit}${unit}…${end}`);
        }
      }
    }
  }
  return undefined;
}

function isSlow(expression: RegExp, start: string, unit: string, end: string): boolean {
  const least = (times: number): number => {
    const most = Math.ceil(MOST_CHARACTERS / unit.length);
    const text = start + unit.repeat(Math.min(times, most)) + end;
    let ms = spentMs(expression, text);
    // Other load on the machine does not slow it every time.
    for (let again = 0; again < 5 && ms > SUSPICIOUS_MS; again += 1) {
      ms = Math.min(ms, spentMs(expression, text));
    }
    return ms;
  };
  return TIMES.some((times) => least(times) > SUSPICIOUS_MS);
}

/** Tries every place where the expression may begin. The clock is finer than that of processor time. */
function spentMs(expression: RegExp, text: string): number {
  const before = performance.now();
  text.replace(expression, "");
  return performance.now() - before;
}

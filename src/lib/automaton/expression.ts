/** The size of the alphabet of automata: the 128 ASCII characters, and one that represents all others. */
export const CHARACTERS = 129;
const ANOTHER = CHARACTERS - 1;

/** A set of characters: 1 at the index of each member, else 0. */
export type CharacterSet = Uint8Array;

/** Returns the index of a UTF-16 code unit in a set. */
export function characterOf(code: number): number {
  return code < ANOTHER ? code : ANOTHER;
}

function setOf(characters: string): CharacterSet {
  const set = new Uint8Array(CHARACTERS);
  for (const character of characters) set[character.charCodeAt(0)] = 1;
  return set;
}

function rangeOf(first: string, last: string): CharacterSet {
  return new Uint8Array(CHARACTERS).fill(1, first.charCodeAt(0), last.charCodeAt(0) + 1);
}

function unionOf(sets: readonly CharacterSet[]): CharacterSet {
  return new Uint8Array(CHARACTERS).map((_, index) =>
    sets.some((set) => set[index] === 1) ? 1 : 0,
  );
}

function complementOf(set: CharacterSet): CharacterSet {
  return set.map((member) => 1 - member);
}

const EVERY_CHARACTER: CharacterSet = new Uint8Array(CHARACTERS).fill(1);
const DIGITS = rangeOf("0", "9");
const WORD_CHARACTERS = unionOf([rangeOf("a", "z"), rangeOf("A", "Z"), DIGITS, setOf("_")]);

/**
 * Parses a regular expression that can be matched in linear time: literals, `.`, classes, `\d`, `\D`, `\w` and `\W`,
 * groups, `|`, and the repetitions `*`, `+`, `?` and `{n,m}`. They have the same meaning as in RE2 and JavaScript.
 * Everything else is an error, including characters that other dialects could interpret differently.
 *
 * @throws ExpressionError
 */
export function parseExpression(text: string): Expression {
  if (text.length > MOST_CHARACTERS) {
    throw new ExpressionError(`is longer than ${MOST_CHARACTERS} characters`);
  }
  return new Parser(text).parse();
}

const MOST_CHARACTERS = 1_000;
const ANCHOR_HINT =
  "leave it out: an expression matches the whole path, and .* at its end allows any rest";
const ESCAPED_CLASSES: Readonly<Record<string, CharacterSet>> = {
  d: DIGITS,
  D: complementOf(DIGITS),
  w: WORD_CHARACTERS,
  W: complementOf(WORD_CHARACTERS),
};
const REPETITION = /\{(\d{1,4})(?:(,)(\d{1,4})?)?\}/y;

class Parser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): Expression {
    const expression = this.#choice();
    if (this.#at < this.#text.length)
      throw this.#error("has an unmatched )", "write \\) for the character");
    return expression;
  }

  get #next(): string {
    return this.#text.charAt(this.#at);
  }

  #error(message: string, hint?: string): ExpressionError {
    return new ExpressionError(message, this.#at + 1, hint);
  }

  #choice(): Expression {
    const options = [this.#sequence()];
    while (this.#next === "|") {
      this.#at += 1;
      options.push(this.#sequence());
    }
    const [only] = options;
    return options.length === 1 && only !== undefined ? only : { kind: "choice", options };
  }

  #sequence(): Expression {
    const parts: Expression[] = [];
    while (this.#at < this.#text.length && this.#next !== "|" && this.#next !== ")") {
      parts.push(this.#repeated(this.#atom()));
    }
    return { kind: "sequence", parts };
  }

  #atom(): Expression {
    const character = this.#next;
    if (character === "(") return this.#group();
    if (character === "[") return { kind: "one", of: this.#class() };
    if (character === "^" || character === "$")
      throw this.#error(`has a ${character}`, ANCHOR_HINT);
    if ("*+?".includes(character)) throw this.#error(`has nothing before ${character} to repeat`);
    if ("{}]".includes(character)) {
      throw this.#error(`has an unescaped ${character}`, `write \\${character} for the character`);
    }
    if (character !== ".") return { kind: "one", of: this.#member() };
    this.#at += 1;
    return { kind: "one", of: EVERY_CHARACTER };
  }

  #group(): Expression {
    const opened = this.#at;
    if (this.#text.startsWith("(?:", opened)) this.#at += 3;
    else if (this.#text.startsWith("(?", opened)) {
      const hint = "only (…) and (?:…) are supported: no lookaround, flags or names";
      throw this.#error("has an unsupported kind of group", hint);
    } else this.#at += 1;
    const inner = this.#choice();
    if (this.#next === ")") {
      this.#at += 1;
      return inner;
    }
    this.#at = opened;
    throw this.#error("has an unclosed (", "write \\( for the character");
  }

  #repeated(part: Expression): Expression {
    const bounds = this.#bounds();
    if (bounds === undefined) return part;
    if (this.#next !== "" && "*+?{".includes(this.#next)) {
      const hint =
        "put the repeated part into a group; lazy and possessive forms would make no difference here";
      throw this.#error("repeats a repetition", hint);
    }
    return { kind: "repeat", part, ...bounds };
  }

  /** Reads a repetition. Returns undefined if there is none. */
  #bounds(): { readonly least: number; readonly most: number } | undefined {
    const simple = { "*": [0, Infinity], "+": [1, Infinity], "?": [0, 1] }[this.#next];
    if (simple !== undefined) {
      this.#at += 1;
      const [least = 0, most = 0] = simple;
      return { least, most };
    }
    if (this.#next !== "{") return undefined;
    REPETITION.lastIndex = this.#at;
    const [all, low = "", comma, high] = REPETITION.exec(this.#text) ?? [];
    if (all === undefined) {
      throw this.#error(
        "has an unescaped {",
        "write \\{ for the character, or {2}, {2,} or {2,5} to repeat",
      );
    }
    const least = Number(low);
    const most = comma === undefined ? least : high === undefined ? Infinity : Number(high);
    if (most < least) throw this.#error("has a repetition whose maximum is below its minimum");
    this.#at += all.length;
    return { least, most };
  }

  /** Reads a class in brackets. */
  #class(): CharacterSet {
    const opened = this.#at;
    this.#at += 1;
    const negated = this.#next === "^";
    if (negated) this.#at += 1;
    const sets: CharacterSet[] = [];
    while (this.#next !== "]") {
      if (this.#next === "") {
        this.#at = opened;
        throw this.#error("has an unclosed [", "write \\[ for the character");
      }
      if (this.#next === "[")
        throw this.#error("has an unescaped [ in a class", "write \\[ for the character");
      sets.push(this.#range());
    }
    this.#at += 1;
    const set = negated ? complementOf(unionOf(sets)) : unionOf(sets);
    if (sets.length > 0 && set.includes(1)) return set;
    this.#at = opened;
    throw this.#error("has a class that matches no character");
  }

  /** Reads a member of a class, or a range. */
  #range(): CharacterSet {
    const started = this.#at;
    const first = this.#member();
    const follows = this.#text.charAt(this.#at + 1);
    if (this.#next !== "-" || follows === "]" || follows === "") return first;
    this.#at += 1;
    const last = this.#member();
    const [from, to] = [single(first), single(last)];
    if (from !== undefined && to !== undefined && from <= to) return rangeOf(from, to);
    this.#at = started;
    throw this.#error(
      "has a range whose ends are not two characters in ascending order",
      "write \\- for the character -",
    );
  }

  /** Reads one character, or a class such as `\d`. */
  #member(): CharacterSet {
    const escaped = this.#next === "\\";
    const character = escaped ? this.#text.charAt(this.#at + 1) : this.#next;
    const known = escaped ? ESCAPED_CLASSES[character] : undefined;
    if (escaped && known === undefined && !/[!-/:-@[-`{-~]/.test(character)) {
      throw this.#error(
        `has \\${character}, which is not supported`,
        "\\d, \\D, \\w and \\W are supported, and \\ before punctuation",
      );
    }
    if (!/^[!-~]$/.test(character)) {
      const hint = "paths contain it percent-encoded, such as %20 for a space";
      throw this.#error("has a character that no path contains", hint);
    }
    this.#at += escaped ? 2 : 1;
    return known ?? setOf(character);
  }
}

/** Returns the only character of a set; undefined if the set has several. */
function single(set: CharacterSet): string | undefined {
  const first = set.indexOf(1);
  return first === set.lastIndexOf(1) ? String.fromCharCode(first) : undefined;
}

/** A parsed regular expression. */
export type Expression =
  | { readonly kind: "one"; readonly of: CharacterSet }
  | { readonly kind: "sequence"; readonly parts: readonly Expression[] }
  | { readonly kind: "choice"; readonly options: readonly Expression[] }
  | {
      readonly kind: "repeat";
      readonly part: Expression;
      readonly least: number;
      /** May be Infinity. */
      readonly most: number;
    };

export const ANY_TEXT: Expression = {
  kind: "repeat",
  part: { kind: "one", of: EVERY_CHARACTER },
  least: 0,
  most: Infinity,
};

/** Returns the expression that matches only this ASCII text. */
export function literal(text: string): Expression {
  const parts = Array.from(text, (character) => ({ kind: "one", of: setOf(character) }) as const);
  return { kind: "sequence", parts };
}

/** An expression is invalid or too costly. */
export class ExpressionError extends Error {
  /** The position of the error, from 1; undefined if it concerns the whole expression. */
  readonly at: number | undefined;
  readonly hint: string | undefined;

  constructor(message: string, at?: number, hint?: string) {
    super(message);
    this.at = at;
    this.hint = hint;
  }
}

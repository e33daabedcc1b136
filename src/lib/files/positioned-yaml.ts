import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  parseDocument,
  visit,
  type YAMLError,
  type YAMLMap,
} from "yaml";

/** What is wrong, and what to write instead. Never quotes the text, which may contain a secret. */
interface LocatedProblem {
  readonly offset: number;
  readonly message: string;
  /** Whether the rest of the text can still be trusted. */
  readonly readable: boolean;
}

/**
 * Replaces messages of the library that quote the text, or that describe the state of the parser instead of the fix.
 */
const WORDS: Partial<Record<YAMLError["code"], string>> = {
  BAD_ALIAS: "this anchor or alias is not valid; if it is meant as text, put it in quotes",
  BAD_COLLECTION_TYPE: "this tag does not fit its value",
  BAD_DIRECTIVE: "this directive is not valid",
  BAD_DQ_ESCAPE: "this is not an escape sequence; single quotes keep a backslash as it is",
  BAD_PROP_ORDER: "an anchor or a tag is in the wrong place",
  BAD_SCALAR_START: "a value cannot begin like this; put it in quotes",
  BLOCK_IN_FLOW:
    'this is not allowed between brackets: a comma is missing, or a value with ": " in it needs quotes',
  IMPOSSIBLE: "this is not valid YAML",
  MULTIPLE_DOCS: "a second document begins here; the file may contain only one",
  NON_STRING_KEY: "a key must be plain text",
  RESOURCE_EXHAUSTION: "this is nested too deeply",
  TAB_AS_INDENT: "a tab cannot indent a line; use spaces",
  TAG_RESOLVE_FAILED: "tags are not supported here",
  UNEXPECTED_TOKEN: "this is unexpected here",
};

/** Codes of errors that the parser often reports as consequences of an error that it has just reported. */
const FOLLOWING: ReadonlySet<YAMLError["code"]> = new Set([
  "BLOCK_AS_IMPLICIT_KEY",
  "MISSING_CHAR",
  "MULTILINE_IMPLICIT_KEY",
  "NON_STRING_KEY",
  "UNEXPECTED_TOKEN",
]);
/** The maximum number of syntax errors that get advice: each takes a look at the whole text. */
const MOST_ADVISED = 100;

/**
 * Returns the first syntax errors that the library found, as advice. Leaves out consequences of an error in the same or
 * the previous line.
 */
function syntaxProblems(document: Document.Parsed, lines: Lines): LocatedProblem[] {
  const faults: LocatedProblem[] = [];
  let last = -2;
  for (const error of [...document.errors, ...document.warnings].slice(0, MOST_ADVISED)) {
    const line = lines.at(error.pos[0]);
    if (line - last <= 1 && FOLLOWING.has(error.code)) {
      last = line;
      continue;
    }
    const { offset = error.pos[0], message } = adviceOn(error, lines, document);
    faults.push({ offset, message: `${message} (YAML: ${error.code})`, readable: false });
    last = Math.max(line, lines.at(offset));
  }
  if (document.directives.yaml.version !== "1.2") {
    faults.push({ offset: 0, message: "only YAML 1.2 is supported", readable: false });
  }
  return faults;
}

type Advice = { readonly offset?: number; readonly message: string };

function adviceOn(error: YAMLError, lines: Lines, document: Document.Parsed): Advice {
  const [offset] = error.pos;
  const line = lines.at(offset);
  if (lines.marksConflict(line)) return { message: "this is the mark of a merge conflict" };
  switch (error.code) {
    case "BAD_INDENT":
      return / (?:\]|\})$/.test(error.message)
        ? { message: "a bracket is still open here: close it, or indent this line" }
        : indentation(lines, line);
    case "BLOCK_AS_IMPLICIT_KEY":
      return nested(lines, line, offset);
    case "MULTILINE_IMPLICIT_KEY":
      return { message: keyWords(lines.text(line)) };
    case "MISSING_CHAR":
      return missing(error, lines, document);
    default:
      return { message: WORDS[error.code] ?? error.message };
  }
}

/**
 * Advice for wrong indentation: a line begins at a column where nothing above it begins. The line is `from`, or the
 * next line that has more than a comment.
 */
function indentation(lines: Lines, from: number): Advice {
  const line = lines.after(from - 1) ?? from;
  const own = lines.indent(line);
  const open = lines.open(line);
  const offset = lines.offset(line) + own;
  const isItem = lines.isItem(line);
  const beside = open.find(({ indent, item }) => indent === own && item !== isItem);
  if (beside !== undefined) {
    const message = isItem
      ? "an item of a list cannot be on the same level as keys: indent it further than the key of its list"
      : `this line is indented like the items of the list above: begin it with "- ", or indent it by ${beside.content} to continue the item`;
    return { offset, message };
  }
  const fits = open.map(({ item, indent, content }) => (item && !isItem ? content : indent));
  const places = [...new Set(fits)].toSorted((a, b) => a - b).join(" or ");
  return { offset, message: `this line is indented by ${own}; those above it by ${places}` };
}

/** Advice for a mapping or a list that begins in the same line as its key, or below a key that has a value already. */
function nested(lines: Lines, line: number, offset: number): Advice {
  const next = lines.after(line);
  if (lines.isItem(line)) return indentation(lines, line);
  const rest = lines.text(line).slice(offset - lines.offset(line));
  if (next !== undefined && !/:(?:\s|$)/.test(rest) && lines.indent(next) > lines.indent(line)) {
    const message = `this line is indented deeper than line ${line + 1}, which has a value already`;
    return { offset: lines.offset(next) + lines.indent(next), message };
  }
  return { message: 'a value with ": " in it must be in quotes' };
}

function keyWords(source: string): string {
  return /^\s*(?:- +)*[\w.-]+:\S/.test(source)
    ? "a space must follow the colon after a key"
    : "a colon and a space must follow a key; an item of a list begins with a dash and a space";
}

function missing(error: YAMLError, lines: Lines, document: Document.Parsed): Advice {
  const [offset] = error.pos;
  if (error.message.includes("quote")) {
    return { offset: openQuote(document, offset), message: "this quote is not closed" };
  }
  return error.message.startsWith("Implicit ")
    ? { message: keyWords(lines.text(lines.at(offset))) }
    : { message: "a comma is missing here" };
}

/** Returns the offset at which the quoted text begins that extends to `end`. */
function openQuote(document: Document.Parsed, end: number): number {
  let start = end;
  visit(document, (_key, node) => {
    if (!isScalar(node) || !node.type?.startsWith("QUOTE_") || !node.range) return;
    const [from, to] = node.range;
    if (from < end && end <= to + 1) start = from;
  });
  return start;
}

/** A line with a key or an item of a list. */
interface Level {
  /** The column of the key or of the dash, from 0. */
  readonly indent: number;
  readonly item: boolean;
  /** The column of the key, or of the first character after the dash. */
  readonly content: number;
}

/** The lines of a text, counted from 0. */
class Lines {
  readonly #lines: readonly string[];
  /** Has all lines: one that the library fills lacks some after a syntax error. */
  readonly #counter = new LineCounter();

  constructor(text: string) {
    this.#lines = text.split("\n");
    let start = 0;
    for (const line of this.#lines) {
      this.#counter.addNewLine(start);
      start += line.length + 1;
    }
  }

  at(offset: number): number {
    return Math.max(this.#counter.linePos(offset).line - 1, 0);
  }
  offset(line: number): number {
    return this.#counter.lineStarts[line] ?? 0;
  }
  text(line: number): string {
    return this.#lines[line] ?? "";
  }
  indent(line: number): number {
    return this.text(line).search(/[^ ]|$/);
  }
  isItem(line: number): boolean {
    return /^ *-(?:\s|$)/.test(this.text(line));
  }
  marksConflict(line: number): boolean {
    return /^(?:<{7}|={7}|>{7})(?:\s|$)/.test(this.text(line));
  }

  /** Returns the next line that is neither empty nor a comment. */
  after(line: number): number | undefined {
    const found = this.#lines.findIndex((text, index) => index > line && !isBlank(text));
    return found < 0 ? undefined : found;
  }

  /** Returns the keys and items on whose level a line could continue, the deepest first. */
  open(line: number): Level[] {
    const levels: Level[] = [];
    let deepest = Number.POSITIVE_INFINITY;
    for (let above = line - 1; above >= 0 && deepest > 0; above -= 1) {
      if (isBlank(this.text(above))) continue;
      const indent = this.indent(above);
      if (indent >= deepest) continue;
      const item = this.isItem(above);
      const content = this.text(above).search(item ? /[^ -]|$/ : /[^ ]|$/);
      levels.push({ indent, item, content });
      deepest = indent;
    }
    return levels;
  }
}

function isBlank(text: string): boolean {
  return /^\s*(?:#|$)/.test(text);
}

/** A position in a text. Line and column count from 1; `source` is the whole line. */
interface YamlPosition {
  readonly line: number;
  readonly column: number;
  readonly source: string;
}

/** A problem in a YAML text. Its message never quotes the text. */
interface YamlProblem extends YamlPosition {
  readonly file: string;
  readonly message: string;
}

export type YamlPath = readonly (string | number)[];

export interface PositionedYaml {
  /** Plain objects, arrays and scalars; undefined if the text could not be read. */
  readonly value: unknown;
  /**
   * Returns the position of the value at a path, or of its key. If the path does not exist, returns the position of its
   * nearest existing ancestor.
   */
  positionOf(path: YamlPath, of?: "key" | "value"): YamlPosition;
  /** In the order of the text. */
  readonly problems: readonly YamlProblem[];
}

/** A limit on alias expansion, which could otherwise fill the memory (a "billion laughs" document). */
const MAX_ALIAS_COUNT = 100;
/** The library compares each alias with all before it. */
const MAX_ALIASES = 10_000;
/** What an alias within something anchored counts for: for each, the library walks through the whole document. */
const NESTED_ALIAS = 100;
const TOO_MANY_ALIASES = "aliases repeat too much";

/**
 * Parses one YAML 1.2 document (core schema) and keeps the position of every value. Reports these problems with their
 * positions: syntax errors, duplicate keys, keys that are not text, `__proto__`, custom tags, a second document,
 * another YAML version, and aliases that are undefined, recursive or expand too much.
 *
 * @param file the file name in problems.
 */
export function parsePositionedYaml(text: string, file: string): PositionedYaml {
  const withoutMark = text.startsWith("\uFEFF") ? text.slice(1) : text;
  const document = parseDocument(withoutMark, {
    // "silent" would also hide the error about a second document.
    logLevel: "error",
    prettyErrors: false,
    stringKeys: true,
    // The library compares each key with all keys before it, which takes 5 s for 20,000 users. `referenceProblems`
    // finds the duplicates instead.
    uniqueKeys: false,
  });

  const lines = new Lines(withoutMark);
  const positionAt = (offset: number): YamlPosition => {
    const line = lines.at(offset);
    const source = lines.text(line).replace(/\r$/, "");
    return { line: line + 1, column: offset - lines.offset(line) + 1, source };
  };
  const faults = [...syntaxProblems(document, lines), ...referenceProblems(document, lines)];
  let value: unknown;
  try {
    const readable = faults.every((fault) => fault.readable);
    value = readable ? document.toJS({ maxAliasCount: MAX_ALIAS_COUNT }) : undefined;
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    faults.push({ offset: 0, message: TOO_MANY_ALIASES, readable: false });
  }

  const members: Members = new WeakMap();
  const problems = faults
    .toSorted((a, b) => a.offset - b.offset)
    .map(({ offset, message }) => ({ file, ...positionAt(offset), message }));
  return {
    value,
    positionOf: (path, of = "value") => positionAt(offsetOf(document, members, path, of)),
    problems,
  };
}

/** Finds aliases and keys that are not allowed, and removes such keys from the document. */
function referenceProblems(document: Document.Parsed, lines: Lines): LocatedProblem[] {
  const faults: LocatedProblem[] = [];
  const anchored = new Map<string, unknown>();
  const noteAnchor = (node: { readonly anchor?: string }): void => {
    if (node.anchor !== undefined) anchored.set(node.anchor, node);
  };
  let aliases = 0;
  visit(document, {
    Value: (_key, value) => noteAnchor(value),
    Alias(_key, alias, ancestors) {
      const isNested = ancestors.some((each) => "anchor" in each && each.anchor !== undefined);
      aliases += isNested ? NESTED_ALIAS : 1;
      const isOneTooMany = aliases > MAX_ALIASES;
      const target = anchored.get(alias.source);
      let message = isOneTooMany ? TOO_MANY_ALIASES : "this alias contains itself";
      if (target === undefined)
        message = "this alias names no anchor above it; if it is meant as text, put it in quotes";
      else if (!isOneTooMany && !ancestors.some((each) => each === target)) return undefined;
      faults.push({ offset: startOf(alias) ?? 0, message, readable: false });
      return isOneTooMany ? visit.BREAK : undefined;
    },
    Map(_key, map) {
      noteAnchor(map);
      // The first of several equal keys counts, since positions refer to it.
      const seen = new Map<unknown, number>();
      map.items = map.items.filter((pair) => {
        const name = nameOf(pair);
        const offset = startOf(pair.key) ?? 0;
        const first = seen.get(name);
        if (first === undefined) seen.set(name, offset);
        if (name !== "__proto__" && first === undefined) return true;
        const message =
          first === undefined
            ? "this key is not allowed"
            : `this key appears twice, first in line ${lines.at(first) + 1}`;
        faults.push({ offset, message, readable: true });
        return false;
      });
    },
  });
  return faults;
}

/** A cache of the members of each mapping: a linear search for each of 20,000 users would take minutes. */
type Members = WeakMap<YAMLMap, ReadonlyMap<unknown, Pair>>;

/** Returns the offset of the value at a path, or of its nearest existing ancestor. */
function offsetOf(
  document: Document.Parsed,
  members: Members,
  path: YamlPath,
  of: "key" | "value",
): number {
  let node: unknown = document.contents;
  let keyOffset = startOf(node) ?? 0;
  let valueOffset = keyOffset;
  for (const [index, segment] of path.entries()) {
    const parent = isAlias(node) ? node.resolve(document) : node;
    const found = childAt(parent, segment, members);
    if (found === undefined) return index === 0 ? 0 : keyOffset;
    keyOffset = startOf(found.key) ?? startOf(found.value) ?? keyOffset;
    valueOffset = startOf(found.value) ?? keyOffset;
    node = found.value;
  }
  return of === "key" ? keyOffset : valueOffset;
}

function childAt(
  parent: unknown,
  segment: string | number,
  members: Members,
): { key: unknown; value: unknown } | undefined {
  if (isMap(parent)) {
    const known = members.get(parent) ?? new Map(parent.items.map((pair) => [nameOf(pair), pair]));
    members.set(parent, known);
    return known.get(String(segment));
  }
  if (isSeq(parent) && typeof segment === "number") {
    const value = parent.items[segment];
    return value === undefined ? undefined : { key: undefined, value };
  }
  return undefined;
}

function nameOf({ key }: Pair): unknown {
  return isScalar(key) ? key.value : key;
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}

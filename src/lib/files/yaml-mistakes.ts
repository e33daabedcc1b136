import { type Document, isScalar, visit, type YAMLError } from "yaml";

/** A syntax error: where it is, and what to write instead. Never quotes the text, which may contain a secret. */
export interface YamlMistake {
  readonly offset: number;
  readonly message: string;
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

/**
 * Returns the syntax errors that the library found, as advice. Leaves out consequences of an error in the same or the
 * previous line.
 */
export function yamlMistakes(text: string, document: Document.Parsed): YamlMistake[] {
  const lines = new Lines(text);
  const mistakes: YamlMistake[] = [];
  let last = -2;
  for (const error of [...document.errors, ...document.warnings]) {
    const line = lines.at(error.pos[0]);
    if (line - last <= 1 && FOLLOWING.has(error.code)) {
      last = line;
      continue;
    }
    const { offset = error.pos[0], message } = adviceOn(error, lines, document);
    mistakes.push({ offset, message: `${message} (YAML: ${error.code})` });
    last = Math.max(line, lines.at(offset));
  }
  return mistakes;
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
  readonly #offsets: number[] = [];

  constructor(text: string) {
    this.#lines = text.split("\n");
    let offset = 0;
    for (const line of this.#lines) {
      this.#offsets.push(offset);
      offset += line.length + 1;
    }
  }

  at(offset: number): number {
    const after = this.#offsets.findIndex((start) => start > offset);
    return (after < 0 ? this.#offsets.length : after) - 1;
  }
  offset(line: number): number {
    return this.#offsets[line] ?? 0;
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

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
  type YAMLMap,
} from "yaml";
import { yamlMistakes } from "./yaml-mistakes.ts";

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

/**
 * Parses one YAML 1.2 document (core schema) and keeps the position of every value. Reports these problems with their
 * positions: syntax errors, duplicate keys, keys that are not text, `__proto__`, custom tags, a second document,
 * another YAML version, and aliases that are undefined, recursive or expand too much.
 *
 * @param file the file name in problems.
 */
export function parsePositionedYaml(text: string, file: string): PositionedYaml {
  const withoutMark = text.startsWith("\uFEFF") ? text.slice(1) : text;
  const lines = withoutMark.split("\n");
  const lineCounter = new LineCounter();
  const document = parseDocument(withoutMark, {
    lineCounter,
    // "silent" would also hide the error about a second document.
    logLevel: "error",
    prettyErrors: false,
    stringKeys: true,
    // The library compares each key with all keys before it, which takes 5 s for 20,000 users. `referenceProblems`
    // finds the duplicates instead.
    uniqueKeys: false,
  });

  const positionAt = (offset: number): YamlPosition => {
    const { line, col } = lineCounter.linePos(offset);
    const source = lines[Math.max(line, 1) - 1] ?? "";
    return { line: Math.max(line, 1), column: Math.max(col, 1), source: source.replace(/\r$/, "") };
  };
  const lineOf = (offset: number): number => positionAt(offset).line;
  const faults = [...syntaxProblems(withoutMark, document), ...referenceProblems(document, lineOf)];
  const readable = faults.every((fault) => fault.readable);
  const { value, excess } = readable ? plainValue(document) : { value: undefined, excess: [] };

  const members: Members = new WeakMap();
  const problems = [...faults, ...excess]
    .toSorted((a, b) => a.offset - b.offset)
    .map(({ offset, message }) => ({ file, ...positionAt(offset), message }));
  return {
    value: excess.length > 0 ? undefined : value,
    positionOf: (path, of = "value") => positionAt(offsetOf(document, members, path, of)),
    problems,
  };
}

interface LocatedProblem {
  readonly offset: number;
  readonly message: string;
  /** Whether the rest of the text can still be trusted. */
  readonly readable: boolean;
}

function syntaxProblems(text: string, document: Document.Parsed): LocatedProblem[] {
  const faults = yamlMistakes(text, document).map((mistake) => ({ ...mistake, readable: false }));
  if (document.directives.yaml.version !== "1.2") {
    faults.push({ offset: 0, message: "only YAML 1.2 is supported", readable: false });
  }
  return faults;
}

/** Finds aliases and keys that are not allowed, and removes such keys from the document. */
function referenceProblems(
  document: Document.Parsed,
  lineOf: (offset: number) => number,
): LocatedProblem[] {
  const faults: LocatedProblem[] = [];
  visit(document, {
    Alias(_key, alias, ancestors) {
      const target = alias.resolve(document);
      if (target !== undefined && !ancestors.includes(target)) return;
      const message =
        target === undefined
          ? "this alias names no anchor above it; if it is meant as text, put it in quotes"
          : "this alias contains itself";
      faults.push({ offset: alias.range?.[0] ?? 0, message, readable: false });
    },
    Map(_key, map) {
      // The first of several equal keys counts, since positions refer to it.
      const seen = new Map<unknown, number>();
      map.items = map.items.filter(({ key }) => {
        const name = isScalar(key) ? key.value : key;
        const offset = startOf(key) ?? 0;
        const first = seen.get(name);
        if (first === undefined) seen.set(name, offset);
        if (name !== "__proto__" && first === undefined) return true;
        const message =
          first === undefined
            ? "this key is not allowed"
            : `this key appears twice, first in line ${lineOf(first)}`;
        faults.push({ offset, message, readable: true });
        return false;
      });
    },
  });
  return faults;
}

function plainValue(document: Document.Parsed): { value: unknown; excess: LocatedProblem[] } {
  try {
    return { value: document.toJS({ maxAliasCount: MAX_ALIAS_COUNT }), excess: [] };
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    const message = "aliases repeat too much";
    return { value: undefined, excess: [{ offset: 0, message, readable: false }] };
  }
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
    const known = members.get(parent) ?? membersOf(parent);
    members.set(parent, known);
    return known.get(String(segment));
  }
  if (isSeq(parent) && typeof segment === "number") {
    const value = parent.items[segment];
    return value === undefined ? undefined : { key: undefined, value };
  }
  return undefined;
}

function membersOf(map: YAMLMap): ReadonlyMap<unknown, Pair> {
  return new Map(map.items.map((pair) => [isScalar(pair.key) ? pair.key.value : pair.key, pair]));
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}

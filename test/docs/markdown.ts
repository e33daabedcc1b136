import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

export const ROOT = resolve(import.meta.dirname, "../..");

/** One row of a table: the text of each cell by column name. */
type Row = Readonly<Record<string, string>>;

interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly Row[];
}

/** A fenced block of code. */
interface Block {
  readonly language: string;
  readonly text: string;
}

export interface Document {
  readonly text: string;
  readonly tables: readonly Table[];
  readonly blocks: readonly Block[];
  /**
   * Returns the rows of every table with exactly these columns. Throws if there is none, so that no test passes
   * vacuously.
   */
  rows(...columns: string[]): Row[];
}

/** Reads a Markdown file of the repository. */
export function readDocument(name: string): Document {
  const text = readFileSync(join(ROOT, name), "utf8");
  const blocks = [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(
    ([, language = "", code = ""]) => ({ language, text: code }),
  );
  const tables = [...text.matchAll(/^\|.*\|\n\|[ |-]+\|\n(?:\|.*\|\n)*/gm)].map(([lines]) =>
    tableOf(lines),
  );
  return {
    text,
    tables,
    blocks,
    rows(...columns) {
      const found = tables.filter((table) => table.columns.join("|") === columns.join("|"));
      if (found.length === 0)
        throw new Error(`${name} has no table with the columns ${columns.join(", ")}`);
      return found.flatMap(({ rows }) => rows);
    },
  };
}

/** Returns everything between backquotes in a cell. */
export function codesIn(cell = ""): string[] {
  return [...cell.matchAll(/`([^`]*)`/g)].map(([, code = ""]) => code);
}

/** Returns the only text between backquotes in a cell, or the cell itself without any. */
export function codeIn(cell = ""): string {
  return codesIn(cell)[0] ?? cell;
}

function tableOf(lines: string): Table {
  const [columns = [], , ...rows] = lines.trimEnd().split("\n").map(cellsOf);
  return {
    columns,
    rows: rows.map((cells) =>
      Object.fromEntries(columns.map((name, index) => [name, cells[index] ?? ""])),
    ),
  };
}

function cellsOf(line: string): string[] {
  return line
    .slice(1, -1)
    .split("|")
    .map((cell) => cell.trim());
}

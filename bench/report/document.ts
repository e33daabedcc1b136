import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { REPOSITORY } from "../setting/product.ts";
import type { Results } from "./results.ts";
import { renderResults, renderTargets } from "./tables.ts";

export const FIGURES_BEGIN = "<!-- figures: begin, written by `npm run bench -- --write-docs` -->";
export const FIGURES_END = "<!-- figures: end -->";

/** Writes the figures between the markers in `bench/RESULTS.md`. @returns the file. */
export async function writeDocument(results: Results): Promise<string> {
  const file = join(REPOSITORY, "bench/RESULTS.md");
  const text = await readFile(file, "utf8");
  const begin = text.indexOf(FIGURES_BEGIN);
  const end = text.indexOf(FIGURES_END, begin);
  if (begin === -1 || end === -1) throw new Error(`${file} has no marks for the figures`);
  const figures = `${renderResults(results)}\n\n### The targets\n\n${renderTargets(results)}`;
  const before = text.slice(0, begin + FIGURES_BEGIN.length);
  await writeFile(file, `${before}\n\n${figures}\n\n${text.slice(end)}`);
  return file;
}

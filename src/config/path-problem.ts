import type { YamlPath } from "../lib/files/positioned-yaml.ts";
import { nearest } from "../lib/text/nearest.ts";

/** A configuration problem at a path, before its position in a file is known. */
export interface PathProblem {
  readonly path: YamlPath;
  /** Continues the name of the key: "must be …". Never repeats a value, which may be a secret. */
  readonly message: string;
  /** Whether the problem is with the key or with its value. */
  readonly of?: "key" | "value";
  readonly hint?: string;
  /** Another position that the problem involves. */
  readonly related?: { readonly path: YamlPath; readonly message: string };
}

/** Adds "did you mean" to a problem if one of the candidates is similar to the written text. */
export function withSuggestion(
  problem: PathProblem,
  written: string,
  candidates: Iterable<string>,
): PathProblem {
  const near = nearest(written, candidates);
  return near === undefined ? problem : { ...problem, hint: `did you mean ${near}?` };
}

/** Returns `upstreams.app.targets[0]`, or "the configuration" for the root. */
export function pathName(path: YamlPath): string {
  const name = path
    .map((segment) => (typeof segment === "number" ? `[${segment}]` : `.${segment}`))
    .join("");
  return name === "" ? "the configuration" : name.replace(/^\./, "");
}

import type { YamlPath } from "../lib/positioned-yaml.ts";
import { nearest } from "../lib/nearest.ts";

/** Something wrong at a path of the configuration, before its place in a file is known. */
export interface Fault {
  readonly path: YamlPath;
  /** Continues the name of what is at the path: "must be …". Never repeats a value, which may hold a secret. */
  readonly message: string;
  /** Whether the key is at fault, not its value. */
  readonly of?: "key" | "value";
  readonly hint?: string;
}

/** A fault with "did you mean" when one of the candidates is near to what was written. */
export function suggesting(fault: Fault, written: string, candidates: Iterable<string>): Fault {
  const near = nearest(written, candidates);
  return near === undefined ? fault : { ...fault, hint: `did you mean ${near}?` };
}

/** `upstreams.app.targets[0]`; the whole is called "the configuration". */
export function pathName(path: YamlPath): string {
  const name = path
    .map((segment) => (typeof segment === "number" ? `[${segment}]` : `.${segment}`))
    .join("");
  return name === "" ? "the configuration" : name.replace(/^\./, "");
}

import { isUtf8 } from "node:buffer";
import { ConfigError, type ConfigProblem } from "./config-problem.ts";
import { parsePositionedYaml, type YamlPath } from "../lib/files/positioned-yaml.ts";

/** Files of our own beside the configuration: users, API keys. */

/**
 * Reads a file in YAML and UTF-8.
 *
 * @param file the file name for problems.
 * @param read reads the document, and collects what is wrong with it.
 * @throws ConfigError with all problems and their positions, but without the lines, which may contain secrets.
 */
export function readPositioned(
  bytes: Buffer,
  file: string,
  read: (value: unknown, found: ProblemCollector) => void,
): void {
  if (!isUtf8(bytes)) throw new ConfigError([{ file, message: "the file is not UTF-8" }]);
  const yaml = parsePositionedYaml(bytes.toString("utf8"), file);
  const problems: ConfigProblem[] = yaml.problems.map(({ line, column, message }) => {
    return { file, line, column, message };
  });
  const placeOf: PlaceOf = (...path) => {
    const { line, column } = yaml.positionOf(...path);
    return { line, column };
  };
  if (yaml.value !== undefined) read(yaml.value, new ProblemCollector(placeOf, file, problems));
  else if (problems.length === 0) problems.push({ file, message: "the file is empty" });
  if (problems.length > 0) throw new ConfigError(problems.toSorted(byPlace));
}

function byPlace(a: ConfigProblem, b: ConfigProblem): number {
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}

const CONTROL = /\p{Cc}/u;

/** Returns the place of a value, or of its key; nothing in a source without lines. */
type PlaceOf = (
  path: YamlPath,
  of: "key" | "value",
) => { readonly line?: number; readonly column?: number };

/** Collects configuration problems with their positions. */
export class ProblemCollector {
  readonly #placeOf: PlaceOf;
  readonly #file: string;
  readonly #problems: ConfigProblem[];

  constructor(placeOf: PlaceOf, file: string, problems: ConfigProblem[]) {
    this.#placeOf = placeOf;
    this.#file = file;
    this.#problems = problems;
  }

  add(path: YamlPath, of: "key" | "value", message: string): void {
    this.#problems.push({ file: this.#file, ...this.#placeOf(path, of), message });
  }

  /**
   * Returns the members of a mapping and reports unknown keys. Reports anything that is not a mapping and returns
   * undefined.
   */
  members(
    value: unknown,
    path: YamlPath,
    what: string,
    known?: readonly string[],
  ): Map<string, unknown> | undefined {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      const instead = Array.isArray(value) ? ": write NAME: { … } instead of each `- `" : "";
      this.add(path, "value", `${what} must be a mapping${instead}`);
      return undefined;
    }
    // The parser has already reported `__proto__`.
    const members = Object.entries(value).filter(([key]) => key !== "__proto__");
    for (const [key] of members) {
      if (known?.includes(key) === false) {
        this.add([...path, key], "key", `this key is unknown; known are ${known.join(", ")}`);
      }
    }
    return new Map(members);
  }

  /** Returns the names of groups. */
  groups(value: unknown, path: YamlPath): readonly string[] {
    if (value === undefined) return [];
    if (!Array.isArray(value)) {
      this.add(path, "value", "groups must be a list");
      return [];
    }
    const groups: string[] = [];
    for (const [index, group] of value.entries()) {
      if (typeof group !== "string" || group === "") {
        this.add([...path, index], "value", "the name of a group must be a text");
      } else if (group.includes(",") || CONTROL.test(group)) {
        // Groups reach the backend as one comma-separated header.
        const message = "the name of a group must not hold commas or control characters";
        this.add([...path, index], "value", message);
      } else {
        groups.push(group);
      }
    }
    return groups;
  }

  /** Returns whether an entry is disabled, also if it cannot be known. */
  disabled(value: unknown, path: YamlPath): boolean {
    if (value === undefined || typeof value === "boolean") return value ?? false;
    this.add(path, "value", "disabled must be true or false");
    return true;
  }
}

import type { ConfigProblem } from "../core/config-problem.ts";
import type { PositionedYaml, YamlPath } from "../lib/positioned-yaml.ts";

/** Collects what is wrong, with its place. */
export class Findings {
  readonly #yaml: PositionedYaml;
  readonly #file: string;
  readonly #problems: ConfigProblem[];

  constructor(yaml: PositionedYaml, file: string, problems: ConfigProblem[]) {
    this.#yaml = yaml;
    this.#file = file;
    this.#problems = problems;
  }

  add(path: YamlPath, of: "key" | "value", message: string): void {
    const { line, column } = this.#yaml.place(path, of);
    this.#problems.push({ file: this.#file, line, column, message });
  }

  /** The members of a mapping, after unknown keys were told; undefined, and told, when it is something else. */
  members(
    value: unknown,
    path: YamlPath,
    what: string,
    known?: readonly string[],
  ): Map<string, unknown> | undefined {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      this.add(path, "value", `${what} must be a mapping`);
      return undefined;
    }
    // `__proto__` is already told by the parser.
    const members = Object.entries(value).filter(([key]) => key !== "__proto__");
    for (const [key] of members) {
      if (known?.includes(key) === false) {
        this.add([...path, key], "key", `this key is unknown; known are ${known.join(", ")}`);
      }
    }
    return new Map(members);
  }
}

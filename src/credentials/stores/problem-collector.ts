import type { ConfigProblem } from "../../core/config-problem.ts";
import type { PositionedYaml, YamlPath } from "../../lib/files/positioned-yaml.ts";

/** Collects configuration problems with their positions. */
export class ProblemCollector {
  readonly #yaml: PositionedYaml;
  readonly #file: string;
  readonly #problems: ConfigProblem[];

  constructor(yaml: PositionedYaml, file: string, problems: ConfigProblem[]) {
    this.#yaml = yaml;
    this.#file = file;
    this.#problems = problems;
  }

  add(path: YamlPath, of: "key" | "value", message: string): void {
    const { line, column } = this.#yaml.positionOf(path, of);
    this.#problems.push({ file: this.#file, line, column, message });
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
      this.add(path, "value", `${what} must be a mapping`);
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
}

/** One fault in the configuration or in a file that it names, told with its place. */
export interface ConfigProblem {
  readonly file: string;
  /** Counted from 1; undefined when the fault has no place in the file (the file is missing, say). */
  readonly line?: number;
  readonly column?: number;
  readonly message: string;
  /** What to do about it: "did you mean …". */
  readonly hint?: string;
  /** The line itself, for the caret; left out where it could hold a secret. */
  readonly source?: string;
}

/** Everything that is wrong, at once. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(problems.map(describeProblem).join("\n"));
    this.name = "ConfigError";
    this.problems = problems;
  }
}

/** `file:line:column: message`, on one line. */
export function describeProblem(problem: ConfigProblem): string {
  const place = [problem.file, problem.line, problem.column].filter((part) => part !== undefined);
  const hint = problem.hint === undefined ? "" : ` (${problem.hint})`;
  return `${place.join(":")}: ${problem.message}${hint}`;
}

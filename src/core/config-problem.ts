/** A problem in the configuration or in a file that it names, with its position. */
export interface ConfigProblem {
  readonly file: string;
  /** Counts from 1; undefined if the problem has no position, such as a missing file. */
  readonly line?: number;
  readonly column?: number;
  readonly message: string;
  /** How to fix it: "did you mean …". */
  readonly hint?: string;
  /** The source line, for the caret; left out if it could hold a secret. */
  readonly source?: string;
  /** A related position, such as that of the second of two conflicting routes. */
  readonly related?: Omit<ConfigProblem, "hint" | "related">;
}

/** Returns the problem without source lines, for output without a caret. */
export function withoutSource({
  source: _line,
  related,
  ...problem
}: ConfigProblem): ConfigProblem {
  return related === undefined ? problem : { ...problem, related: withoutSource(related) };
}

/** An error that reports all problems of a configuration. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[]) {
    super(firstProblems(problems).map(describeProblem).join("\n"));
    this.name = "ConfigError";
    this.problems = problems;
  }
}

/** The maximum number of listed problems. */
const MAX_PROBLEMS = 20;

/** Returns the first 20 problems; if there are more, adds one that states their number. */
export function firstProblems(problems: readonly ConfigProblem[]): readonly ConfigProblem[] {
  const first = problems.slice(0, MAX_PROBLEMS);
  const last = first.at(-1);
  const left = problems.length - first.length;
  if (last === undefined || left === 0) return first;
  return [...first, { file: last.file, message: `and ${left} more problems` }];
}

/** `file:line:column: message`, on one line. */
export function describeProblem(problem: ConfigProblem): string {
  const hint = problem.hint === undefined ? "" : ` (${problem.hint})`;
  const { related } = problem;
  const other = related === undefined ? "" : `; ${related.message} is at ${placeOf(related)}`;
  return `${placeOf(problem)}: ${problem.message}${hint}${other}`;
}

/** `file:line:column`, as far as they are known. */
export function placeOf({ file, line, column }: ConfigProblem): string {
  return [file, line, column].filter((part) => part !== undefined).join(":");
}

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
    super(firstProblems(problems).map(describeProblem).join("\n"));
    this.name = "ConfigError";
    this.problems = problems;
  }
}

const MOST_TOLD = 20;

/** The first of very many problems, and how many more there are: nobody reads thousands of lines. */
export function firstProblems(problems: readonly ConfigProblem[]): readonly ConfigProblem[] {
  const first = problems.slice(0, MOST_TOLD);
  const last = first.at(-1);
  const left = problems.length - first.length;
  if (last === undefined || left === 0) return first;
  return [...first, { file: last.file, message: `and ${left} more problems` }];
}

/** `file:line:column: message`, on one line. */
export function describeProblem(problem: ConfigProblem): string {
  const place = [problem.file, problem.line, problem.column].filter((part) => part !== undefined);
  const hint = problem.hint === undefined ? "" : ` (${problem.hint})`;
  return `${place.join(":")}: ${problem.message}${hint}`;
}

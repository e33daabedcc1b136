import { styleText } from "node:util";
import { describeProblem, firstProblems } from "../core/config-problem.ts";
import type { ConfigProblem } from "../core/config-problem.ts";

/**
 * Problems for a person, the first of very many: place and message, the line at fault, a caret under the column, the hint.
 *
 * @returns lines joined by line breaks, without one at the end.
 */
export function renderProblems(
  problems: readonly ConfigProblem[],
  options: { color: boolean },
): string {
  const paint = (format: "red" | "dim" | "bold", text: string): string =>
    options.color ? styleText(format, text, { validateStream: false }) : text;

  return firstProblems(problems)
    .map((problem) => {
      const { hint, source, ...rest } = problem;
      const head = paint("bold", printable(describeProblem(rest)));
      const { line, column } = rest;
      if (source === undefined || line === undefined || column === undefined) {
        return hint === undefined ? head : `${head}\n  ${printable(hint)}`;
      }
      const number = ` ${line} `;
      const bar = paint("dim", `${" ".repeat(number.length)}|`);
      const [before, after] = excerpt(source, column);
      // Tabs stay, so that the caret stands under its column whatever a tab's width.
      const caret = paint("red", `${before.replaceAll(/[^\t]/gu, " ")}^`);
      const tail = hint === undefined ? caret : `${caret} ${printable(hint)}`;
      return `${head}\n${paint("dim", `${number}|`)} ${printable(before + after)}\n${bar} ${tail}`;
    })
    .join("\n");
}

const LONGEST_EXCERPT = 100;

/** The line around a column, as what stands before and from it on; a file may be one endless line. */
function excerpt(source: string, column: number): [string, string] {
  const before = source.slice(0, column - 1);
  const after = source.slice(column - 1);
  return [
    before.length > LONGEST_EXCERPT ? `…${before.slice(-LONGEST_EXCERPT)}` : before,
    after.length > LONGEST_EXCERPT ? `${after.slice(0, LONGEST_EXCERPT)}…` : after,
  ];
}

/** A file must not be able to write control sequences to a terminal. */
function printable(text: string): string {
  return text.replaceAll(/(?!\t)[\p{C}\p{Zl}\p{Zp}]/gu, "\uFFFD");
}

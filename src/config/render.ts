import { styleText } from "node:util";
import { maskText, namesSecret, PASSWORD_HASH } from "../observe/log/redaction.ts";
import { type ConfigProblem, describeProblem, firstProblems } from "../core/config-problem.ts";

/** `name: value` or `name=value`; a name after a slash is part of a URL. */
const NAMED = /(?<![/\w.-])([\w.-]+)["']?\s*([:=])(?=\s*[^\s&,}\]])/g;

/** Keys of the configuration whose names look like those of secrets, but whose values are not secret. */
const OWN_KEYS = new Set([
  "auth",
  "credentials",
  "endWithToken",
  "forwardAuthorization",
  "tokens",
  "keys",
]);

/** Credentials in a URL, tokens, PEM. */
const SECRET_VALUE = /:\/\/(?:[^\s:@]|:(?!\/\/))*@|eyJ[A-Za-z0-9_-]|-----BEGIN/;

/** Text that is already masked, with the name or separator that would make it look like a secret. */
const REDACTED = /(?:(?<![\w.-])[\w.-]+=|:)?\[redacted\]@?/g;

const REFERENCE = /\$\{[^{}]*\}/g;

/** Reports whether a line of a file may contain a secret, so that it must not be quoted. */
export function mayHoldSecret(line: string): boolean {
  const isNamed = [...line.matchAll(NAMED)].some(
    ([, name = "", sign]) => namesSecret(name) && !(sign === ":" && OWN_KEYS.has(name)),
  );
  return isNamed || SECRET_VALUE.test(line) || line.search(PASSWORD_HASH) >= 0;
}

/** Masks text that looks like a secret: in place if possible, otherwise the whole text. */
export function maskSecrets(text: string): string {
  const masked = maskText(text);
  const rest = masked.replaceAll(REDACTED, "").replaceAll(REFERENCE, "");
  return mayHoldSecret(rest) ? MASKED : masked;
}

export const MASKED = "[masked]";

/**
 * Renders problems for people: position and message, the source line, a caret under the column, the hint. If there are
 * very many problems, renders only the first ones.
 *
 * @returns lines joined by line breaks, without one at the end.
 */
export function renderProblems(
  problems: readonly ConfigProblem[],
  options: { color: boolean },
): string {
  const paint = (format: "red" | "dim" | "bold", text: string): string =>
    options.color ? styleText(format, text, { validateStream: false }) : text;

  const rendered = (problem: ConfigProblem): string => {
    const { hint, source, related: _next, ...rest } = problem;
    const head = paint("bold", printable(describeProblem(rest)));
    const { line, column } = rest;
    if (source === undefined || line === undefined || column === undefined) {
      return hint === undefined ? head : `${head}\n  ${printable(hint)}`;
    }
    const number = ` ${line} `;
    const bar = paint("dim", `${" ".repeat(number.length)}|`);
    const [before, after] = excerpt(source, column);
    // Tabs are kept, so that the caret is in the right column whatever their width.
    const caret = paint("red", `${before.replaceAll(/[^\t]/gu, " ")}^`);
    const tail = hint === undefined ? caret : `${caret} ${printable(hint)}`;
    return `${head}\n${paint("dim", `${number}|`)} ${printable(before + after)}\n${bar} ${tail}`;
  };
  return firstProblems(problems)
    .flatMap((problem) => [problem, ...(problem.related === undefined ? [] : [problem.related])])
    .map(rendered)
    .join("\n");
}

const LONGEST_EXCERPT = 100;

/** Returns the text of a line before and from a column, truncated: a file may consist of one very long line. */
function excerpt(source: string, column: number): [string, string] {
  const before = source.slice(0, column - 1);
  const after = source.slice(column - 1);
  return [
    before.length > LONGEST_EXCERPT ? `…${before.slice(-LONGEST_EXCERPT)}` : before,
    after.length > LONGEST_EXCERPT ? `${after.slice(0, LONGEST_EXCERPT)}…` : after,
  ];
}

/** Replaces control characters, so that a file cannot write control sequences to the terminal. */
function printable(text: string): string {
  return text.replaceAll(/(?!\t)[\p{C}\p{Zl}\p{Zp}]/gu, "\uFFFD");
}

import type { Terminal } from "../command.ts";

/** Marks in front of result lines. */
export interface Marks {
  readonly good: string;
  readonly bad: string;
  readonly warning: string;
  readonly skipped: string;
}

const SIGNS: Marks = { good: "✓", bad: "✗", warning: "!", skipped: "-" };
const ASCII: Marks = { good: "+", bad: "x", warning: "!", skipped: "-" };

/**
 * Returns Unicode marks in UTF-8 locales (POSIX: LC_ALL before LC_CTYPE before LANG), ASCII elsewhere and with
 * NO_COLOR.
 */
export function marksFor({ env }: Pick<Terminal, "env">): Marks {
  const locale = env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "";
  const plain = (env["NO_COLOR"] ?? "") !== "" || !/utf-?8/i.test(locale);
  return plain ? ASCII : SIGNS;
}

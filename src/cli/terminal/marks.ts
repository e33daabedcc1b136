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

/** Returns Unicode marks in UTF-8 locales, ASCII elsewhere and with NO_COLOR. */
export function marksFor({ env }: Pick<Terminal, "env">): Marks {
  return (env["NO_COLOR"] ?? "") === "" && showsUnicode(env) ? SIGNS : ASCII;
}

/** Whether the locale is one of UTF-8 (POSIX: LC_ALL before LC_CTYPE before LANG). */
export function showsUnicode(env: Terminal["env"]): boolean {
  return /utf-?8/i.test(env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "");
}

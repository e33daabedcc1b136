import { type Terminal, UsageError } from "../command.ts";

/** Marks in front of result lines. */
export type Marks = Readonly<Record<"good" | "bad" | "warning" | "skipped", string>>;

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

/**
 * @returns the output format of a command.
 * @throws UsageError for an unknown one.
 */
export function formatFrom<const Format extends string>(
  given: string | undefined,
  formats: readonly [Format, ...Format[]],
  flag = "--format",
): Format {
  if (given === undefined) return formats[0];
  const known = formats.find((format) => format === given);
  if (known === undefined) {
    throw new UsageError(`${flag} must be ${formats.join(" or ")}, not ${given}`);
  }
  return known;
}

/** Aligns rows of cells in columns, two blanks apart. Returns a line for each row. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const width = (column: number): number =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(width(column)))
      .join("  ")
      .trimEnd(),
  );
}

import { UsageError } from "./command.ts";

/** @returns which of its formats a command prints. @throws UsageError for another one. */
export function formatFrom<const Format extends string>(
  given: string | undefined,
  formats: readonly [Format, ...Format[]],
): Format {
  if (given === undefined) return formats[0];
  const known = formats.find((format) => format === given);
  if (known === undefined) {
    throw new UsageError(`--format wants ${formats.join(" or ")}, not ${given}`);
  }
  return known;
}

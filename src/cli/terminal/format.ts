import { UsageError } from "../command.ts";

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

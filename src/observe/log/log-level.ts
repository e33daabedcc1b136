export type LogLevel = "debug" | "info" | "warn" | "error";

const RANKS = { debug: 0, info: 1, warn: 2, error: 3 } satisfies Record<LogLevel, number>;

/** Whether a log set to `threshold` writes lines of this level. */
export function reaches(level: LogLevel, threshold: LogLevel): boolean {
  return RANKS[level] >= RANKS[threshold];
}

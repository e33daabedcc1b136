export type LogLevel = "debug" | "info" | "warn" | "error";

const RANKS = { debug: 0, info: 1, warn: 2, error: 3 } satisfies Record<LogLevel, number>;

/** Whether a line of this level is written when the log is set to `threshold`. */
export function reaches(level: LogLevel, threshold: LogLevel): boolean {
  return RANKS[level] >= RANKS[threshold];
}

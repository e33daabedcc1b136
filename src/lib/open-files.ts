import { readFileSync } from "node:fs";

/**
 * How many files, sockets among them, this process may have open: the soft limit, which Node raises to the hard one at start.
 *
 * @returns undefined where there is no /proc, and Infinity where there is no limit.
 */
export function openFilesAllowed(): number | undefined {
  try {
    const limits = readFileSync("/proc/self/limits", "latin1");
    const soft = /^Max open files +(\d+|unlimited) /m.exec(limits)?.[1];
    return soft === "unlimited" ? Infinity : soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}

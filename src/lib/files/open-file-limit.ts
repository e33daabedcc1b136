import { readFileSync } from "node:fs";

/**
 * Returns how many files, including sockets, this process may have open: the soft limit, which Node raises to the
 * hard limit at start.
 *
 * @returns undefined if there is no /proc, Infinity if there is no limit.
 */
export function openFileLimit(): number | undefined {
  try {
    const limits = readFileSync("/proc/self/limits", "latin1");
    const soft = /^Max open files +(\d+|unlimited) /m.exec(limits)?.[1];
    return soft === "unlimited" ? Infinity : soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}

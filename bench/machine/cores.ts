import { readFileSync } from "node:fs";
import { type Child, run, startChild } from "./children.ts";
import { findProgram } from "./programs.ts";

/** The cores that a proxy may use: one that nothing else uses, or all of the machine. */
export type Cores = "own" | "all";

/** How the cores are divided, as lists of numbers for taskset(1). */
export interface Division {
  readonly proxy: string;
  readonly others: string;
}

/** The cores that this program had at its start. */
const ALLOWED = allowedCores();

/**
 * The first core is for the proxies, the others for this program, load and backends. When all shared two cores, the same
 * Sallyport took 1.3 (plain) and 1.5 (TLS) times the CPU, with single rounds up to twice as expensive, and HAProxy 1.02 and
 * 1.04.
 *
 * Undefined if there is only one core, or no `taskset` (util-linux).
 */
export const DIVISION: Division | undefined = divisionOf(ALLOWED);

/** Confines this program, and everything that it starts from now on, to its cores. Only `startProxy` uses others. */
export async function keepToOwnCores(): Promise<void> {
  if (DIVISION === undefined) return;
  await run("taskset", ["-a", "-c", "-p", DIVISION.others, String(process.pid)]);
}

/** Starts a proxy on the cores that it may use. */
export function startProxy(
  cores: Cores,
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Child {
  if (DIVISION === undefined) return startChild(command, args, env);
  const list = cores === "own" ? DIVISION.proxy : ALLOWED.join(",");
  // taskset replaces itself with the command, so the process id is that of the proxy.
  return startChild("taskset", ["-c", list, command, ...args], env);
}

function divisionOf([first, ...others]: readonly number[]): Division | undefined {
  if (first === undefined || others.length === 0 || findProgram("taskset") === undefined) {
    return undefined;
  }
  return { proxy: String(first), others: others.join(",") };
}

/** Reads `Cpus_allowed_list` (proc_pid_status(5)): numbers and ranges. */
function allowedCores(): readonly number[] {
  const [, list = ""] =
    /^Cpus_allowed_list:\s+(\S+)$/m.exec(readFileSync("/proc/self/status", "latin1")) ?? [];
  return list.split(",").flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}

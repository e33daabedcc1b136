import { readFileSync } from "node:fs";
import { type Child, run, startChild } from "./children.ts";
import { findProgram } from "./programs.ts";

/** The cores that a proxy may use: one that nobody else uses, or every one of the machine. */
export type Cores = "own" | "all";

/** Which cores are whose; they are told apart by their numbers, as taskset(1) takes them. */
export interface Division {
  readonly proxy: string;
  readonly others: string;
}

/** From this program's beginning, before it gave any away. */
const ALLOWED = allowedCores();

/**
 * The first core for the proxies, and the others for this program, load and backends. Where all shared two cores, the same
 * Sallyport took 1.3 (plain) and 1.5 (TLS) times the CPU, with single rounds up to twice as dear, and HAProxy 1.02 and 1.04.
 *
 * Undefined where there is one core alone, or no `taskset` (util-linux).
 */
export const DIVISION: Division | undefined = divisionOf(ALLOWED);

/** Keeps this program and all that it starts from now on to its cores. Only what `startProxy` starts gets others. */
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
  // It becomes the command: the process id is that of the proxy.
  return startChild("taskset", ["-c", list, command, ...args], env);
}

function divisionOf([first, ...others]: readonly number[]): Division | undefined {
  if (first === undefined || others.length === 0 || findProgram("taskset") === undefined) {
    return undefined;
  }
  return { proxy: String(first), others: others.join(",") };
}

/** `Cpus_allowed_list` of proc_pid_status(5): numbers and ranges of them. */
function allowedCores(): readonly number[] {
  const [, list = ""] =
    /^Cpus_allowed_list:\s+(\S+)$/m.exec(readFileSync("/proc/self/status", "latin1")) ?? [];
  return list.split(",").flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}

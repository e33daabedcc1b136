import { readFileSync, writeFileSync } from "node:fs";

/** Selects which memory goes into a core dump of this process; 0 selects none (core(5), since Linux 2.6.23). */
const DUMP_FILTER = "/proc/self/coredump_filter";

/**
 * Keeps the memory of this process out of files and debuggers as far as a process can: core dumps stay empty, Node
 * writes no crash reports or heap snapshots, and SIGUSR1 does not open the debugger port.
 */
export function hardenProcess(): void {
  try {
    writeFileSync(DUMP_FILTER, "0");
  } catch {
    // Not Linux, or not permitted: `exposures` reports it.
  }
  const { report } = process;
  report.reportOnFatalError = false;
  report.reportOnSignal = false;
  report.reportOnUncaughtException = false;
  report.excludeEnv = true;
  // Node starts the inspector on SIGUSR1 unless there is a listener. A signal that already has a listener has that of
  // --heapsnapshot-signal.
  const listening = process.eventNames().filter((name) => String(name).startsWith("SIG"));
  for (const name of new Set([...listening, "SIGUSR1"])) {
    process.removeAllListeners(name).on(name, () => undefined);
  }
}

/** Command-line options of Node that expose memory or traffic and that a process cannot undo. */
const SWITCH =
  /^--(?:inspect(?:-brk|-wait)?$|heapsnapshot-near-heap-limit|heap-prof|abort-on-uncaught-exception|tls-keylog|trace-tls)/;

/** Lists the options, variables and limits with which this process was started and that expose it. Holds no values. */
export function exposures(): string[] {
  const { execArgv, env } = process;
  const given = [...execArgv, ...(env["NODE_OPTIONS"] ?? "").split(/\s+/)];
  const switches = given
    .map((word) => word.replace(/=.*$/s, "").replaceAll("_", "-"))
    .filter((word) => SWITCH.test(word));
  const variables = ["NODE_DEBUG", "NODE_DEBUG_NATIVE"].filter((name) => (env[name] ?? "") !== "");
  return [...new Set([...switches, ...variables, ...(coreDumps() ? ["core dumps"] : [])])];
}

/** Whether a crash may write memory to a core file. Without /proc that is unknown and not reported. */
function coreDumps(): boolean {
  try {
    if (Number.parseInt(readFileSync(DUMP_FILTER, "latin1"), 16) === 0) return false;
    const limits = readFileSync("/proc/self/limits", "latin1");
    return !/^Max core file size\s+0\s/m.test(limits);
  } catch {
    return false;
  }
}

import { readFileSync, writeFileSync } from "node:fs";

/** Selects which memory goes into a core dump of this process; 0 selects none (core(5), since Linux 2.6.23). */
const DUMP_FILTER = "/proc/self/coredump_filter";

/**
 * Keeps the memory of this process out of files and debuggers as far as a process can: core dumps stay empty, Node
 * writes no crash reports or heap snapshots, and SIGUSR1 does not open the debugger port. SIGUSR2, with which other
 * proxies upgrade or reload, would end the process without a drain.
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
  // Node starts the inspector on SIGUSR1 unless the signal has a listener. If any signal already has a listener, it
  // is the one of --heapsnapshot-signal.
  const listening = process.eventNames().filter((name) => String(name).startsWith("SIG"));
  for (const name of new Set([...listening, "SIGUSR1", "SIGUSR2"])) {
    process.removeAllListeners(name).on(name, () => undefined);
  }
}

/** Command-line options of Node that expose memory or traffic and cannot be undone by the process. */
const SWITCH =
  /^--(?:inspect(?:-brk|-wait)?$|heapsnapshot-near-heap-limit|heap-prof|abort-on-uncaught-exception|tls-keylog|trace-tls)/;

/** Lists the names of the options, variables and limits of this process that expose its memory or traffic. */
export function exposures(): string[] {
  const { execArgv, env } = process;
  const given = [...execArgv, ...(env["NODE_OPTIONS"] ?? "").split(/\s+/)];
  const switches = given
    .map((word) => word.replace(/=.*$/s, "").replaceAll("_", "-"))
    .filter((word) => SWITCH.test(word));
  const variables = ["NODE_DEBUG", "NODE_DEBUG_NATIVE"].filter((name) => (env[name] ?? "") !== "");
  return [...new Set([...switches, ...variables, ...(coreDumps() ? ["core dumps"] : [])])];
}

/** Whether a crash may write memory to a core file. Returns false without /proc, where this is unknown. */
function coreDumps(): boolean {
  try {
    if (Number.parseInt(readFileSync(DUMP_FILTER, "latin1"), 16) === 0) return false;
    const limits = readFileSync("/proc/self/limits", "latin1");
    return !/^Max core file size\s+0\s/m.test(limits);
  } catch {
    return false;
  }
}

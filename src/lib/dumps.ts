import { readFileSync, writeFileSync } from "node:fs";

/** Which kinds of memory a core dump of this process holds; 0 is none (core(5), since Linux 2.6.23). */
const DUMP_FILTER = "/proc/self/coredump_filter";

/**
 * Keeps the memory of this process out of files and debuggers, as far as a process can: core dumps hold none of it, crash
 * reports are not written, no signal writes a heap snapshot, and SIGUSR1 does not open Node's debugger port.
 */
export function forbidDumps(): void {
  try {
    writeFileSync(DUMP_FILTER, "0");
  } catch {
    // Another system than Linux, or one that forbids it: `openings` tells.
  }
  const { report } = process;
  report.reportOnFatalError = false;
  report.reportOnSignal = false;
  report.reportOnUncaughtException = false;
  report.excludeEnv = true;
  // Node starts the inspector on SIGUSR1 unless somebody listens to it. Who listens already, to any signal, is the one that
  // writes heap snapshots (--heapsnapshot-signal).
  const listening = process.eventNames().filter((name) => String(name).startsWith("SIG"));
  for (const name of new Set([...listening, "SIGUSR1"])) {
    process.removeAllListeners(name).on(name, () => undefined);
  }
}

/** Switches of Node's that open the memory or the traffic, and that a process cannot take back. */
const SWITCH =
  /^--(?:inspect(?:-brk|-wait)?$|heapsnapshot-near-heap-limit|heap-prof|abort-on-uncaught-exception|tls-keylog|trace-tls)/;

/** @returns the names of what was left open by those who started this process; no values. */
export function openings(): string[] {
  const { execArgv, env } = process;
  const given = [...execArgv, ...(env["NODE_OPTIONS"] ?? "").split(/\s+/)];
  const switches = given
    .map((word) => word.replace(/=.*$/s, "").replaceAll("_", "-"))
    .filter((word) => SWITCH.test(word));
  const variables = ["NODE_DEBUG", "NODE_DEBUG_NATIVE"].filter((name) => (env[name] ?? "") !== "");
  return [...new Set([...switches, ...variables, ...(coreDumps() ? ["core dumps"] : [])])];
}

/** Whether a crash may write memory to a core file. Unknown, and so not told, where there is no /proc. */
function coreDumps(): boolean {
  try {
    if (Number.parseInt(readFileSync(DUMP_FILTER, "latin1"), 16) === 0) return false;
    const limits = readFileSync("/proc/self/limits", "latin1");
    return !/^Max core file size\s+0\s/m.test(limits);
  } catch {
    return false;
  }
}

import { readdir, readFile } from "node:fs/promises";
import type { Sallyport } from "./sallyport.ts";

/**
 * The most memory that the proxy has had resident so far, in bytes: `VmHWM` of /proc/<pid>/status (proc(5)), the peak of
 * `VmRSS`, which no sampling can miss.
 */
export async function peakResidentBytes(gate: Pick<Sallyport, "directory">): Promise<number> {
  for (const pid of await readdir("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    const commandLine = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (!commandLine.includes(gate.directory)) continue;
    const status = await readFile(`/proc/${pid}/status`, "utf8");
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
  }
  throw new Error("the proxy does not run");
}

import { readdir, readFile } from "node:fs/promises";
import type { Sallyport } from "./sallyport.ts";

const MIB = 1024 * 1024;

/**
 * What Node's type stripping, a compiler in WebAssembly, holds of a process that runs from source: measured as 178 MiB at
 * rest from src/ and 132 MiB from dist/. What is shipped has none of it.
 */
const TYPE_STRIPPING = 46 * MIB;

/**
 * The most memory that the proxy has had resident so far, in bytes: `VmHWM` of /proc/<pid>/status (proc(5)), the peak of
 * `VmRSS`, which no sampling can miss. Without what type stripping takes.
 */
export async function peakResidentBytes(gate: Pick<Sallyport, "directory">): Promise<number> {
  for (const pid of await readdir("/proc")) {
    if (!/^\d+$/.test(pid)) continue;
    const commandLine = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (!commandLine.includes(gate.directory)) continue;
    const status = await readFile(`/proc/${pid}/status`, "utf8");
    const peak = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
    return commandLine.includes("main.ts") ? peak - TYPE_STRIPPING : peak;
  }
  throw new Error("the proxy does not run");
}

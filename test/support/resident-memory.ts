import { readdir, readFile } from "node:fs/promises";
import type { Sallyport } from "./sallyport.ts";

const MIB = 1024 * 1024;

/**
 * The memory of Node's type stripping, a WebAssembly compiler, in a process that runs from source: measured as 178 MiB
 * idle from src/ and 132 MiB from dist/. The released build does not need it.
 */
const TYPE_STRIPPING = 46 * MIB;

/**
 * Returns the peak resident memory of the proxy in bytes, without that of type stripping: `VmHWM` of /proc/<pid>/status
 * (proc(5)), the peak of `VmRSS`, which does not depend on sampling.
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

import { readdir, readFile } from "node:fs/promises";
import type { Sallyport } from "./sallyport.ts";
import { until } from "./until.ts";

/** What the process of a proxy holds, by /proc (proc(5)). */
export interface ProxyResources {
  descriptors(): Promise<number>;
  residentBytes(): Promise<number>;
}

/** Finds the process that was started in the gate's directory. */
export async function resourcesOf(gate: Pick<Sallyport, "directory">): Promise<ProxyResources> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    const commandLine = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (!commandLine.includes(gate.directory)) continue;
    return {
      descriptors: async () => (await readdir(`/proc/${pid}/fd`)).length,
      async residentBytes() {
        const status = await readFile(`/proc/${pid}/status`, "utf8");
        return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
      },
    };
  }
  throw new Error("the proxy does not run");
}

/** A few more than at first are connections to the backend that are kept, and a look of ours at the metrics. */
const KEPT = 8;

/** Waits until the descriptors are back at what they were; throws when they do not come back in time. */
export async function untilDescriptorsAreBack(
  resources: ProxyResources,
  base: number,
  timeoutMs = 8_000,
): Promise<void> {
  await until(async () => (await resources.descriptors()) <= base + KEPT, timeoutMs);
}

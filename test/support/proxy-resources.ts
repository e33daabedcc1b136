import { readdir, readFile } from "node:fs/promises";
import type { Sallyport } from "./sallyport.ts";
import { until } from "./until.ts";

/** The resources of a proxy's process, from /proc (proc(5)). */
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

/** Allowed on top: a few idle connections to the backend, and our own request for the metrics. */
const TOLERANCE = 8;

/** Waits until the number of descriptors is back near `base`. Throws after `timeoutMs`. */
export async function untilDescriptorsAreBack(
  resources: ProxyResources,
  base: number,
  timeoutMs = 8_000,
): Promise<void> {
  await until(async () => (await resources.descriptors()) <= base + TOLERANCE, timeoutMs);
}

import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

/** Resident memory over some time, in bytes. */
export interface Memory {
  readonly first: number;
  /** `VmHWM`, the peak that Linux itself records, which sampling cannot miss. */
  readonly peak: number;
  readonly last: number;
  /** Milliseconds from the beginning until the highest sample. */
  readonly peakAfterMs: number;
}

const EVERY_MS = 50;

/** Samples `/proc/<pid>/status` (proc(5)) until `stop` is aborted, or the process has ended. */
export async function watchMemory(pid: number, stop: AbortSignal): Promise<Memory> {
  const began = performance.now();
  const first = residentOf(pid).now ?? 0;
  let memory: Memory = { first, peak: first, last: first, peakAfterMs: 0 };
  let greatest = first;
  while (!stop.aborted) {
    const { now, peak } = residentOf(pid);
    if (now === undefined || peak === undefined) break;
    const higher = now > greatest;
    greatest = Math.max(greatest, now);
    const peakAfterMs = higher ? performance.now() - began : memory.peakAfterMs;
    memory = { first, peak, last: now, peakAfterMs };
    await delay(EVERY_MS);
  }
  return memory;
}

function residentOf(pid: number): { readonly now?: number; readonly peak?: number } {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    return bytesOf(status);
  } catch {
    return {};
  }
}

/** Reads the values; they are missing for a process that has ended but was not waited for yet. */
function bytesOf(status: string): { readonly now?: number; readonly peak?: number } {
  const [now, peak] = ["VmRSS", "VmHWM"].map(
    (name) => new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1],
  );
  if (now === undefined || peak === undefined) return {};
  return { now: Number(now) * 1024, peak: Number(peak) * 1024 };
}

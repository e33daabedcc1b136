import { readdirSync, readFileSync } from "node:fs";

/** The resources used by a program and its descendants, according to the operating system. */
export interface Usage {
  /** User and system time of all threads, living and ended, in seconds. */
  readonly cpuSeconds: number;
  readonly residentBytes: number;
}

/** `/proc` counts in USER_HZ, which is always 100 for programs on Linux (proc_pid_stat(5)). */
const TICKS_PER_SECOND = 100;

interface Stat {
  readonly parent: number;
  readonly ticks: number;
}

/** Returns the sum over a program and its descendants. One that has ended is counted with its parent. */
export function usageOf(pid: number): Usage {
  const tree = treeOf(pid);
  const ticks = tree.reduce((sum, member) => sum + (statOf(member)?.ticks ?? 0), 0);
  return {
    cpuSeconds: ticks / TICKS_PER_SECOND,
    residentBytes: tree.reduce((sum, member) => sum + residentBytesOf(member), 0),
  };
}

/** Samples the resident memory until `during` has settled, and returns the maximum, in bytes. */
export async function peakMemory<T>(
  pid: number,
  during: Promise<T>,
  everyMs = 50,
): Promise<{ readonly result: T; readonly peakBytes: number }> {
  const tree = treeOf(pid);
  let peakBytes = 0;
  const look = (): void => {
    const bytes = tree.reduce((sum, member) => sum + residentBytesOf(member), 0);
    peakBytes = Math.max(peakBytes, bytes);
  };
  look();
  const timer = setInterval(look, everyMs);
  try {
    const result = await during;
    look();
    return { result, peakBytes };
  } finally {
    clearInterval(timer);
  }
}

function treeOf(pid: number): readonly number[] {
  const childrenOf = Map.groupBy(
    readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map(Number),
    (member) => statOf(member)?.parent ?? 0,
  );
  const tree = [pid];
  // The list grows during the loop: children of children follow.
  for (const member of tree) tree.push(...(childrenOf.get(member) ?? []));
  return tree;
}

/** Fields 4 (ppid) and 14 to 17 (utime, stime, and those of children that were waited for) of proc_pid_stat(5). */
function statOf(pid: number): Stat | undefined {
  const text = read(`/proc/${pid}/stat`);
  if (text === undefined) return undefined;
  // The name, in parentheses, may contain anything; field 3 follows it.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return { parent: Number(fields[1]), ticks };
}

function residentBytesOf(pid: number): number {
  const found = /^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`) ?? "");
  return Number(found?.[1] ?? 0) * 1024;
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "latin1");
  } catch {
    return undefined; // it has ended
  }
}

import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The state of a process, from the operating system. */
export interface ProcessState {
  /** Open descriptors by kind: `socket`, `pipe`, `anon_inode`, `file`. */
  readonly descriptors: Readonly<Record<string, number>>;
  readonly residentBytes: number;
  readonly threads: number;
}

/** Reads `/proc/<pid>` (proc(5)). Throws if there is no such process. */
export function processState(pid: number): ProcessState {
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  return {
    descriptors: descriptorsOf(pid),
    residentBytes: Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024,
    threads: Number(/^Threads:\s+(\d+)$/m.exec(status)?.[1]),
  };
}

/** Returns the number of all open descriptors. */
export function openDescriptors({ descriptors }: Pick<ProcessState, "descriptors">): number {
  return Object.values(descriptors).reduce((sum, count) => sum + count, 0);
}

function descriptorsOf(pid: number): Record<string, number> {
  const counts: Record<string, number> = { socket: 0 };
  for (const number of readdirSync(`/proc/${pid}/fd`)) {
    const kind = kindOf(`/proc/${pid}/fd/${number}`);
    if (kind !== undefined) counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

/** Returns the kind of a descriptor; undefined if it was closed in the meantime. */
function kindOf(link: string): string | undefined {
  try {
    return /^(socket|pipe|anon_inode):/.exec(readlinkSync(link))?.[1] ?? "file";
  } catch {
    return undefined;
  }
}

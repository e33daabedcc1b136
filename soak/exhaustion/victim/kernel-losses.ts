import { readFileSync } from "node:fs";

/** What the kernel has lost since its start, for all processes on this machine. A lost SYN is sent again after a second. */
export interface KernelLosses {
  /** Connections that were refused because the queue of a listening socket was full. */
  readonly overflows: number;
  /** SYNs that were sent again. */
  readonly synsAgain: number;
  /** Packets that were dropped because the queue of a core was full (`net.core.netdev_max_backlog`). */
  readonly packets: number;
}

/** Reads `/proc/net/netstat` and `/proc/net/softnet_stat`. */
export function kernelLosses(): KernelLosses {
  const counters = namedCounters(readFileSync("/proc/net/netstat", "latin1"));
  const cores = readFileSync("/proc/net/softnet_stat", "latin1").trim().split("\n");
  return {
    overflows: counters.get("ListenOverflows") ?? 0,
    synsAgain: counters.get("TCPSynRetrans") ?? 0,
    packets: cores.reduce((sum, core) => sum + parseInt(core.split(" ")[1] ?? "0", 16), 0),
  };
}

export function lossesBetween(before: KernelLosses, after: KernelLosses): KernelLosses {
  return {
    overflows: after.overflows - before.overflows,
    synsAgain: after.synsAgain - before.synsAgain,
    packets: after.packets - before.packets,
  };
}

/** Returns the line below the row of an attack; undefined if nothing was lost. */
export function lossesLine({ overflows, synsAgain, packets }: KernelLosses): string | undefined {
  if (overflows + synsAgain + packets === 0) return undefined;
  return (
    `the kernel: ${overflows} connections beyond a listening socket's queue, ` +
    `${synsAgain} SYNs sent again after 1 s, ${packets} packets dropped`
  );
}

/** Parses pairs of lines: the names of a group, then their values. */
function namedCounters(text: string): ReadonlyMap<string, number> {
  const lines = text.split("\n").map((line) => line.split(" "));
  return new Map(
    lines.flatMap((names, index) =>
      index % 2 === 0
        ? names.map((name, column): [string, number] => [name, Number(lines[index + 1]?.[column])])
        : [],
    ),
  );
}

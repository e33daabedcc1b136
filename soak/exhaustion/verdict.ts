import type { Counts } from "./crowd.ts";
import type { KernelLosses } from "./victim/kernel-losses.ts";
import type { Memory } from "./victim/memory.ts";
import type { Seen, Testimony } from "./witness/witness.ts";

/** The results of one attack. */
export interface Evidence {
  readonly name: string;
  readonly tls: boolean;
  readonly workers: number;
  readonly memory: Memory;
  readonly testimony: Testimony;
  readonly counts: Counts;
  /** Whether the attack was effective. */
  readonly bit: boolean;
  /** Whether all connections that strangers can have are taken, so that no new one can be opened. */
  readonly fills: boolean;
  /** How the process ended, if it did. */
  readonly ended: string | undefined;
  /** Losses of the kernel: a connection whose SYN was lost waits for a second, whatever is attacked. */
  readonly losses: KernelLosses;
}

export interface Judged extends Evidence {
  /** Why it failed; empty if it passed. */
  readonly faults: readonly string[];
}

export const MIB = 1024 * 1024;

/** The limit of resident memory, in bytes. */
const MAX_RESIDENT = 256 * MIB;

export interface Demands {
  /** The longest that a well-behaved client may wait for an answer, in milliseconds. */
  readonly slowestMs: number;
  /** Whether late and missing answers are not faults, as long as there are any answers. */
  readonly memoryOnly: boolean;
}

/** Compares the results of an attack with the demands. */
export function judge(evidence: Evidence, { slowestMs, memoryOnly }: Demands): Judged {
  const faultOf = (what: string, seen: Seen): string | undefined => faultIn(what, seen, slowestMs);
  const { memory, testimony, bit, fills, ended } = evidence;
  const { kept, fresh, livez } = testimony;
  const faults = [
    ended === undefined ? undefined : `the process ended: ${ended}`,
    bit ? undefined : "the attack did not do its work",
    memory.peak <= MAX_RESIDENT
      ? undefined
      : `${mib(memory.peak)} of memory, and not ${mib(MAX_RESIDENT)}`,
    ...(memoryOnly ? [unanswered("a kept connection", kept), unanswered("/livez", livez)] : []),
    ...(memoryOnly ? [] : [faultOf("a kept connection", kept), faultOf("/livez", livez)]),
    memoryOnly || fills ? undefined : faultOf("a new connection", fresh),
  ].filter((fault) => fault !== undefined);
  return { ...evidence, faults };
}

function unanswered(what: string, { answers }: Seen): string | undefined {
  return answers === 0 ? `${what}: no answer at all` : undefined;
}

function faultIn(
  what: string,
  { answers, slowestMs, slowest, failed, failures }: Seen,
  longestMs: number,
): string | undefined {
  if (failed > 0)
    return `${what}: ${failed} of ${answers + failed} failed (${failures.join(", ")})`;
  if (answers === 0) return `${what}: not asked`;
  if (slowestMs <= longestMs) return undefined;
  const [ms, connected, after] = [slowestMs, slowest?.connectedMs, slowest?.afterMs].map((time) =>
    Math.round(time ?? 0),
  );
  return `${what}: an answer after ${ms} ms, connected after ${connected} ms, asked ${after} ms after the first`;
}

/** Formats bytes as whole MiB. */
function mib(bytes: number): string {
  return `${Math.round(bytes / MIB)} MiB`;
}

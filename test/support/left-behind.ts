/**
 * Fails the run if a process that a test started is still running at the end, and kills it. vitest runs this once:
 * before the first test and after the last.
 *
 * Processes of this run are recognized by a variable in their environment, which children inherit. Only Linux exposes
 * it, so other systems are not checked.
 */
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

const MARK = "VITEST_RUN_MARK";
/** How long a process may take to end after its signal. */
const GRACE_MS = 5_000;

interface Left {
  readonly pid: number;
  readonly command: string;
}

export default function setup(): () => Promise<void> {
  return markProcesses(GRACE_MS);
}

/** Marks the processes of this run. @param graceMs how long a process may take to end after its signal. */
export function markProcesses(graceMs: number): () => Promise<void> {
  const run = (process.env[MARK] ??= randomUUID());
  return async () => {
    const deadline = performance.now() + graceMs;
    let left = leftBehind(run);
    while (left.length > 0 && performance.now() < deadline) {
      await delay(100);
      left = leftBehind(run);
    }
    for (const { pid } of left) end(pid);
    if (left.length === 0) return;
    const commands = left.map(({ pid, command }) => `${pid} ${command}`);
    const message = `Tests left processes behind, which are ended now:\n${commands.join("\n")}`;
    // A test that timed out and passed on a retry left the processes of its first try. It is reported as flaky.
    if (someWereFlaky()) console.error(message);
    else throw new Error(message);
  };
}

/** Whether flaky.ts has reported tests in this run, or in an earlier run of the same check. */
function someWereFlaky(): boolean {
  const file = process.env["FLAKY_TESTS"];
  return file !== undefined && existsSync(file) && readFileSync(file, "utf8") !== "";
}

/** Returns the processes of the run, except this one and its direct children: vitest's workers and transformers. */
function leftBehind(run: string): Left[] {
  return processes().flatMap((pid): Left[] => {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
      if (pid === process.pid || !environment.includes(`${MARK}=${run}`)) return [];
      if (parentOf(pid) === process.pid) return [];
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      return command === "" ? [] : [{ pid, command }];
    } catch {
      return []; // it has ended, or belongs to another user
    }
  });
}

function processes(): number[] {
  try {
    return readdirSync("/proc").map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

function parentOf(pid: number): number {
  return Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has already ended.
  }
}

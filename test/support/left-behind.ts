/**
 * Fails the run when a process is left behind that a test started, and ends it. vitest runs it once: before the first test,
 * and when the last is over.
 *
 * Processes of this run are told from all others by a name in their environment, which children inherit; only Linux
 * shows it, so that elsewhere nothing is looked for.
 */
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

const MARK = "VITEST_RUN_MARK";
/** How long a process that was told to end may take. */
const GRACE_MS = 5_000;

interface Left {
  readonly pid: number;
  readonly command: string;
}

export default function setup(): () => Promise<void> {
  return markProcesses(GRACE_MS);
}

/** @param graceMs how long a process that was told to end may take. */
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
    const told = `Tests left processes behind, which are ended now:\n${commands.join("\n")}`;
    // A test that timed out and passed when it was tried again has left its first ones. It is named as flaky.
    if (someWereFlaky()) console.error(told);
    else throw new Error(told);
  };
}

/** Whether flaky.ts has named tests in this run, or in an earlier one of the same check. */
function someWereFlaky(): boolean {
  const file = process.env["FLAKY_TESTS"];
  return file !== undefined && existsSync(file) && readFileSync(file, "utf8") !== "";
}

/** Processes of the run but this one and its own children: vitest's workers, and what transforms files for it. */
function leftBehind(run: string): Left[] {
  return processes().flatMap((pid): Left[] => {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
      if (pid === process.pid || !environment.includes(`${MARK}=${run}`)) return [];
      if (parentOf(pid) === process.pid) return [];
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      return command === "" ? [] : [{ pid, command }];
    } catch {
      return []; // it has ended, or is somebody else's
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
    // It has ended by itself.
  }
}

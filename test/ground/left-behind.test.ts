/** The check for processes that a test run leaves behind finds one, and leaves other processes alone. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { markProcesses } from "../support/left-behind.ts";

const MARK = "VITEST_RUN_MARK";

it("reports and ends an orphaned process, except one of another run", async () => {
  const before = process.env[MARK];
  delete process.env[MARK];
  const teardown = markProcesses(300);
  const mark = process.env[MARK];
  process.env[MARK] = before;

  const left = await orphan({ ...process.env, [MARK]: mark });
  const another = await orphan({ ...process.env, [MARK]: `not-${mark}` });
  onTestFinished(() => void process.kill(another, "SIGKILL"));

  await expect(teardown()).rejects.toThrow(`${left} sleep 120`);
  await expect.poll(() => isRunning(left)).toBe(false);
  expect(isRunning(another)).toBe(true);
});

/** Starts a process whose parent has ended. Returns its id. */
async function orphan(env: NodeJS.ProcessEnv): Promise<number> {
  const lines = "sleep 120 >/dev/null & echo $!";
  const shell = spawn("sh", ["-c", lines], { env, stdio: ["ignore", "pipe", "ignore"] });
  let out = "";
  shell.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  await once(shell, "close");
  return Number(out);
}

/** A process that has ended stays in the list as a zombie until its new parent reaps it. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

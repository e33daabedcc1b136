/** What ends a run of the tests when a process is left behind, seen to find one and to let others be. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect, it, onTestFinished } from "vitest";
import { markProcesses } from "../support/left-behind.ts";

const MARK = "VITEST_RUN_MARK";

it("a process whose parent has ended is reported and ended; one of another run stays", async () => {
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

/** A process whose parent has ended. */
async function orphan(env: NodeJS.ProcessEnv): Promise<number> {
  const lines = "sleep 120 >/dev/null & echo $!";
  const shell = spawn("sh", ["-c", lines], { env, stdio: ["ignore", "pipe", "ignore"] });
  let out = "";
  shell.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  await once(shell, "close");
  return Number(out);
}

/** One that has ended stays in the list as a zombie until its new parent asks. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s*Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

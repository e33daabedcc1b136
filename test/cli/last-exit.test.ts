import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, it } from "vitest";
import { namedPipe } from "../support/named-pipe.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const MODULE = join(import.meta.dirname, "../../src/cli/serving/serve.ts");

/** Runs a program that clears its last exit while `work` is under way. Returns what it says, and how it ends. */
async function cleared(work: string): Promise<{ said: string; signal: string | null }> {
  const script = `
    const { LastExit } = await import(${JSON.stringify(MODULE)});
    const exit = new LastExit();
    ${work}
    await exit.clear(300);
    console.log("clear");
    process.exit(0);
  `;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script]);
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text));
  const [, signal] = (await once(child, "close")) as [number | null, string | null];
  return { said, signal };
}

it("kills a process that waits for storage that does not respond", async () => {
  await using directory = await temporaryDirectory();
  const pipe = await namedPipe(join(directory.path, "pipe"));
  const work = `void (await import("node:fs/promises")).open(${JSON.stringify(pipe)});`;
  expect(await cleared(work)).toEqual({ said: "", signal: "SIGKILL" });
});

it("ends threads, and lets a process exit that waits for nothing", async () => {
  const work = `
    const { Worker } = await import("node:worker_threads");
    new Worker("for (;;);", { eval: true });
  `;
  expect(await cleared(work)).toEqual({ said: "clear\n", signal: null });
});

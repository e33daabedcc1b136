import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { LOOP_WATCH, type Loop, loopOf } from "./loop.ts";

/** A process whose output is read line by line without storing it, and whose event loop is watched. */
export interface WatchedProcess extends AsyncDisposable {
  readonly loop: Loop;
  exited(): boolean;
  /** Returns its resident memory; 0 if it has ended. */
  residentBytes(): Promise<number>;
  /** Returns the troubles found by `onLine`, its standard error output, and how it ended, since the last call. */
  troubles(): string[];
}

/** Maximum number of stored complaints; a flood of them is repetitive. */
const KEPT = 50;

/**
 * Runs a script with this Node.
 * @param preloaded modules that are loaded first.
 * @param onLine gets every line of standard output, and returns the trouble that it reports, if any.
 */
export function watchProcess(
  script: string,
  args: readonly string[],
  preloaded: readonly string[],
  onLine: (line: string) => string | undefined,
): WatchedProcess {
  const imports = [LOOP_WATCH, ...preloaded].flatMap((module) => ["--import", module]);
  const child = spawn(process.execPath, [...imports, script, ...args], {
    env: { ...process.env, SALLYPORT_ENTRY: undefined },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const complaints: string[] = [];
  let stopping = false;
  let running = true;
  const complain = (text: string | undefined): void => {
    if (text !== undefined && complaints.length < KEPT) complaints.push(text.slice(0, 2000));
  };
  let unfinished = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    const lines = (unfinished + text).split("\n");
    unfinished = lines.pop() ?? "";
    for (const line of lines) complain(onLine(line));
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => complain(`on stderr: ${text}`));
  const exit = once(child, "close").then(([code, signal]) => {
    running = false;
    if (!stopping) complain(`the process ended: ${String(code ?? signal)}`);
  });
  return {
    loop: loopOf(child),
    exited: () => !running,
    async residentBytes() {
      const status = await readFile(`/proc/${child.pid ?? 0}/status`, "utf8").catch(() => "");
      return 1024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0);
    },
    troubles: () => complaints.splice(0),
    async [Symbol.asyncDispose]() {
      stopping = true;
      child.kill("SIGKILL");
      await exit;
    },
  };
}

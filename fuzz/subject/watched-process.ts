import { spawn } from "node:child_process";
import { once } from "node:events";

/** A process whose output is read line by line and not kept. */
export interface WatchedProcess extends AsyncDisposable {
  exited(): boolean;
  /** What `complaint` said of its lines, what it wrote on standard error, and how it ended, since the last call. */
  troubles(): string[];
}

/** How much is kept of what it complains about; a flood says the same over and over. */
const KEPT = 50;

/**
 * Runs a script with this Node.
 * @param onLine gets every line of standard output and gives the trouble that it tells of, if any.
 */
export function watchProcess(
  script: string,
  args: readonly string[],
  onLine: (line: string) => string | undefined,
): WatchedProcess {
  const child = spawn(process.execPath, [script, ...args], {
    env: { ...process.env, SALLYPORT_ENTRY: undefined },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const complaints: string[] = [];
  let stopping = false;
  let running = true;
  const complain = (text: string | undefined): void => {
    if (text !== undefined && complaints.length < KEPT) complaints.push(text.slice(0, 2000));
  };
  let unfinished = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = (unfinished + text).split("\n");
    unfinished = lines.pop() ?? "";
    for (const line of lines) complain(onLine(line));
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => complain(`on stderr: ${text}`));
  const exit = once(child, "close").then(([code, signal]) => {
    running = false;
    if (!stopping) complain(`the process ended: ${String(code ?? signal)}`);
  });
  return {
    exited: () => !running,
    troubles: () => complaints.splice(0),
    async [Symbol.asyncDispose]() {
      stopping = true;
      child.kill("SIGKILL");
      await exit;
    },
  };
}

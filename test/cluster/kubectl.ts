/** kubectl, against the cluster that KUBECONFIG names. */
import { execFile, type ChildProcess } from "node:child_process";
import { promisify } from "node:util";

export const KUBECTL = "kubectl";
const run = promisify(execFile);
/** No command of these tests takes longer, in milliseconds; most of them have a `--timeout` of their own. */
const TIMEOUT_MS = 300_000;

export interface Output {
  readonly stdout: string;
  /** Warnings, such as those of Pod Security. */
  readonly stderr: string;
}

/** Runs kubectl until it ends; `input` goes to its standard input. Rejects with what it says when it fails. */
export function kubectl(args: readonly string[], input = ""): Promise<Output> {
  const running = run(KUBECTL, args, { timeout: TIMEOUT_MS, maxBuffer: 16 * 1024 ** 2 });
  running.child.stdin?.end(input);
  return running;
}

/** A kubectl that goes on until its standard input ends. */
export interface Running {
  readonly child: ChildProcess;
  /** What it prints; rejects when it fails. */
  readonly output: Promise<Output>;
}

export function startKubectl(args: readonly string[]): Running {
  const output = run(KUBECTL, args, { maxBuffer: 16 * 1024 ** 2 });
  // Whoever waits for it later gets the error; until then it is nobody's.
  output.catch(() => undefined);
  return { child: output.child, output };
}

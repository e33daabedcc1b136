import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** A child process that never outlives this one. */
export interface Program {
  readonly pid: number;
  readonly child: ChildProcess;
  /** Resolves with the exit code, or the name of the signal that ended it. */
  readonly ended: Promise<number | string>;
  kill(): Promise<void>;
}

export interface ProgramOptions {
  /** The program that runs the script; by default, this Node. */
  readonly command?: string;
  /** Options of the command. */
  readonly flags?: readonly string[];
  readonly script: string;
  readonly args: readonly string[];
  /** Added to our own environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Written to standard input, which then stays open. By default, standard input is empty. */
  readonly input?: string;
  /** Called with each line of standard output, and of standard error. */
  readonly onLine: (line: string) => void;
  readonly onErrorLine: (line: string) => void;
  /** Whether it has an IPC channel; Sallyport has none in production either. */
  readonly messages: boolean;
}

const living = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});

/**
 * Starts a script in its own process group, so that a Ctrl-C that ends the soak test does not reach it.
 */
export function startProgram(options: ProgramOptions): Program {
  const { command = process.execPath, flags = [], script, args, input, env } = options;
  const { messages, onLine, onErrorLine } = options;
  const child = spawn(command, [...flags, script, ...args], {
    stdio: [
      input === undefined ? "ignore" : "pipe",
      "pipe",
      "pipe",
      ...(messages ? (["ipc"] as const) : []),
    ],
    detached: true,
    env: { ...process.env, ...env },
  });
  living.add(child);
  child.stdin?.on("error", () => undefined).write(input);
  if (child.stdout !== null) createInterface({ input: child.stdout }).on("line", onLine);
  if (child.stderr !== null) createInterface({ input: child.stderr }).on("line", onErrorLine);
  const ended = once(child, "close").then(([code, signal]): number | string => {
    living.delete(child);
    return typeof code === "number" ? code : String(signal);
  });
  return {
    pid: child.pid ?? 0,
    child,
    ended,
    async kill() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

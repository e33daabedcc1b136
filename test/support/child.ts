import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { compiled } from "./entry.ts";

export interface Child {
  readonly pid: number;
  /** Lines of standard output so far. */
  readonly lines: readonly string[];
  /** Standard error so far. */
  stderr(): string;
  /** Resolves with the exit code, or the name of the signal that ended it. */
  readonly exit: Promise<number | NodeJS.Signals>;
  exited(): boolean;
  /**
   * Waits for the first line for which `pick` returns a value. Rejects if the child ends; kills it after `timeoutMs`.
   */
  line<T>(pick: (line: string) => T | undefined, timeoutMs?: number): Promise<T>;
  /** Stops reading standard output until the child has ended, so that the pipe fills up. */
  pause(): void;
  signal(name: NodeJS.Signals): void;
  /** Kills it with SIGKILL. */
  kill(): Promise<void>;
}

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/**
 * Runs a script with this Node and these flags. `env` is merged over our environment; undefined removes a variable.
 */
export function startChild(
  script: string,
  args: readonly string[],
  env: Record<string, string | undefined> = {},
  flags: readonly string[] = [],
): Child {
  const child = spawn(process.execPath, [...flags, script, ...args], {
    env: { ...process.env, ...compiled(), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines: string[] = [];
  const watchers = new Set<(line: string) => void>();
  let errors = "";
  let ended = false;
  running.add(child);
  const reader = createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    for (const watch of watchers) {
      watch(line);
    }
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (errors += text));
  const exit = once(child, "close").then(([code, signal]): number | NodeJS.Signals => {
    ended = true;
    running.delete(child);
    return typeof code === "number" ? code : signal;
  });
  return {
    pid: child.pid ?? 0,
    lines,
    stderr: () => errors,
    exit,
    exited: () => ended,
    async line(pick, timeoutMs = 25_000) {
      for (const line of lines) {
        const picked = pick(line);
        if (picked !== undefined) {
          return picked;
        }
      }
      const { promise, resolve, reject } =
        Promise.withResolvers<NonNullable<ReturnType<typeof pick>>>();
      const watch = (line: string): void => {
        const picked = pick(line);
        if (picked !== undefined && picked !== null) {
          resolve(picked);
        }
      };
      const fail = (why: string): void =>
        reject(new Error(`${why}\n${lines.join("\n")}\n${errors}`));
      watchers.add(watch);
      const timer = setTimeout(() => {
        // The caller has no handle yet to end the child.
        child.kill("SIGKILL");
        fail("the line that was waited for did not come");
      }, timeoutMs);
      void exit.then((code) => fail(`the child ended with ${code}`));
      try {
        return await promise;
      } finally {
        clearTimeout(timer);
        watchers.delete(watch);
      }
    },
    pause() {
      reader.pause();
      child.once("exit", () => reader.resume());
    },
    signal: (name) => void child.kill(name),
    async kill() {
      child.kill("SIGKILL");
      await exit;
    },
  };
}

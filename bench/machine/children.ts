import { type ChildProcess, spawn } from "node:child_process";
import { text as wholeText } from "node:stream/consumers";

export interface Child extends AsyncDisposable {
  readonly pid: number;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
  /**
   * Resolves with the first result of `pick`, called with all standard output so far, that is not undefined; later output is
   * discarded. Rejects if the program ends before, or after `timeoutMs`.
   */
  read<T>(pick: (output: string) => T | undefined, timeoutMs?: number): Promise<T>;
  /** Resolves with all standard output when the program has ended. Rejects if the exit code is not 0, or after `timeoutMs`. */
  finish(timeoutMs: number): Promise<string>;
  /** Sends SIGTERM, and SIGKILL after five seconds. */
  stop(): Promise<void>;
}

const STOP_MS = 5_000;
const living = new Set<ChildProcess>();

process.on("exit", () => {
  for (const child of living) signal(child, "SIGKILL");
});
for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, () => process.exit(130));

/** Starts a program in its own process group, so that it ends together with everything that it starts. */
export function startChild(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Child {
  const child = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  living.add(child);
  let complaints = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints = (complaints + text).slice(-4_000);
  });
  const exit = Promise.withResolvers<void>();
  child.once("error", (error) => {
    complaints += error.message;
    living.delete(child);
    exit.resolve();
  });
  child.once("close", () => {
    living.delete(child);
    exit.resolve();
  });
  const ended = exit.promise;
  const failure = (why: string): Error => new Error(`${command} ${why}\n${complaints}`.trim());

  async function stop(): Promise<void> {
    signal(child, "SIGTERM");
    const timer = setTimeout(() => signal(child, "SIGKILL"), STOP_MS);
    await ended;
    clearTimeout(timer);
    signal(child, "SIGKILL"); // what is left of the group
  }

  return {
    pid: child.pid ?? 0,
    ended,
    async read(pick, timeoutMs = 20_000) {
      const found = Promise.withResolvers<NonNullable<ReturnType<typeof pick>>>();
      let output = "";
      const take = (text: string): void => {
        output += text;
        const picked = pick(output);
        if (picked !== undefined && picked !== null) found.resolve(picked);
      };
      child.stdout.setEncoding("utf8").on("data", take);
      const timer = setTimeout(() => found.reject(failure("was not ready in time")), timeoutMs);
      void ended.then(() => found.reject(failure("ended too early")));
      try {
        return await found.promise;
      } finally {
        clearTimeout(timer);
        child.stdout.off("data", take).resume();
      }
    },
    async finish(timeoutMs) {
      const timer = setTimeout(() => signal(child, "SIGKILL"), timeoutMs);
      const [output] = await Promise.all([wholeText(child.stdout), ended]);
      clearTimeout(timer);
      if (child.exitCode !== 0) throw failure(`ended with ${child.exitCode ?? child.signalCode}`);
      return output;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Runs a program and resolves with its standard output. Rejects if it fails or takes longer. */
export async function run(
  command: string,
  args: readonly string[],
  timeoutMs = 60_000,
): Promise<string> {
  return startChild(command, args).finish(timeoutMs);
}

function signal(child: ChildProcess, name: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, name);
  } catch {
    // The group has already ended.
  }
}

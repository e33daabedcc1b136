import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { until } from "../support/until.ts";

/** A server with data, on a free port, that can be killed, suspended and started again. */
export interface StoreServer extends AsyncDisposable {
  readonly port: number;
  /** Undefined while it is not running. */
  pid(): number | undefined;
  /** Starts it unless it is running, and waits until it answers. */
  start(): Promise<void>;
  /** Sends SIGKILL to it and its children. */
  kill(): Promise<void>;
  /** Sends a signal to it and its children. */
  signal(name: "SIGSTOP" | "SIGCONT"): void;
}

export interface StoreProgram {
  readonly port: number;
  readonly command: string;
  readonly args: readonly string[];
  /** The user to run it as, for programs that refuse root. */
  readonly user?: string;
  /** Whether it answers. */
  answers(): Promise<boolean>;
}

/** Returns spawn options that run a child as another user, if the test runs as root. */
export function asUser(user: string | undefined): { readonly uid?: number; readonly gid?: number } {
  if (user === undefined || process.getuid?.() !== 0) return {};
  const id = (flag: string): number =>
    Number(execFileSync("id", [flag, user], { encoding: "utf8" }).trim());
  return { uid: id("-u"), gid: id("-g") };
}

function childrenOf(pid: number): number[] {
  return (readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").match(/\d+/g) ?? []).map(
    Number,
  );
}

export function storeServer({ port, command, args, user, answers }: StoreProgram): StoreServer {
  let child: ChildProcess | undefined;
  let output = "";
  const signal = (name: NodeJS.Signals): void => {
    if (child?.pid === undefined) return;
    // PostgreSQL's children have separate process groups.
    for (const pid of [child.pid, ...childrenOf(child.pid)]) {
      try {
        process.kill(pid, name);
      } catch {
        // It has already ended.
      }
    }
  };
  const kill = async (): Promise<void> => {
    if (child === undefined) return;
    const exit = once(child, "close");
    signal("SIGKILL");
    await exit;
    child = undefined;
  };
  return {
    port,
    pid: () => child?.pid,
    async start() {
      if (child !== undefined) return;
      child = spawn(command, args, {
        stdio: ["ignore", "pipe", "pipe"],
        ...asUser(user),
      });
      for (const stream of [child.stdout, child.stderr]) {
        stream?.on("data", (text: Buffer) => (output += text.toString()));
      }
      await until(async () => {
        if (child?.exitCode !== null) throw new Error(output);
        return answers();
      }, 20_000);
    },
    kill,
    signal,
    [Symbol.asyncDispose]: kill,
  };
}

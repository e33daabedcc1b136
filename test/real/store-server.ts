import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { until } from "../support/until.ts";

/** A server with data of its own, on a port of the system's choice, that can be killed, hung and started again. */
export interface StoreServer extends AsyncDisposable {
  readonly port: number;
  /** Undefined while it does not run. */
  pid(): number | undefined;
  /** Starts it if it does not run, and waits until it answers. */
  start(): Promise<void>;
  /** SIGKILL for it and its children. */
  kill(): Promise<void>;
  /** SIGSTOP or SIGCONT, likewise. */
  signal(name: "SIGSTOP" | "SIGCONT"): void;
}

export interface StoreProgram {
  readonly port: number;
  readonly command: string;
  readonly args: readonly string[];
  /** Who runs it, where root must not. */
  readonly user?: string;
  /** Resolves with whether it answers. */
  answers(): Promise<boolean>;
}

/** The options that make a child another user's, for a test that is run by root. */
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
    // PostgreSQL's children have process groups of their own.
    for (const pid of [child.pid, ...childrenOf(child.pid)]) {
      try {
        process.kill(pid, name);
      } catch {
        // It has ended just now.
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
        ...{ stdio: ["ignore", "pipe", "pipe"], ...asUser(user) },
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

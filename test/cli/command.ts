import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, onTestFinished } from "vitest";
import { run } from "../../src/cli/run.ts";
import { compiled, entry } from "../support/entry.ts";

export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command in this thread; returns the exit code and the output of both streams, as a process would have. */
export async function command(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input: string | Buffer = "",
): Promise<Ended> {
  let out = "";
  let err = "";
  const code = await run(args, {
    env,
    input: new PassThrough().end(input),
    out: (written) => void (out += written),
    err: (written) => void (err += written),
    handedOver: () => Promise.resolve(),
  });
  return { code, out, err };
}

/** Runs `keys` with these arguments; fails the test if it fails or writes to stderr. */
export async function keysCommand(...args: readonly string[]): Promise<void> {
  const { code, err } = await command(["keys", ...args]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
}

/** Runs `sallyport` until it ends. */
export async function childCommand(
  args: readonly string[],
  options: { input?: string | Buffer; env?: Record<string, string>; cwd?: string } = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [entry(), ...args], {
    env: { ...process.env, ...compiled(), SALLYPORT_ENTRY: undefined, ...options.env },
    cwd: options.cwd,
    stdio: "pipe",
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  // A command that does not read its input may have ended before it was written.
  child.stdin.on("error", () => undefined);
  child.stdin.end(options.input);
  const closed = once(child, "close");
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await closed;
  return { code: Number(code), out, err };
}

/** Part of util-linux: runs a command in its own pseudo-terminal. */
const TERMINAL = "script";

export const hasTerminal = spawnSync(TERMINAL, ["--version"]).status === 0;

/**
 * Starts `sallyport` in its own pseudo-terminal, which the program `script` provides. `script` runs the line
 * in a shell; `exec` replaces the shell with the command, so the exit code is the command's even after Ctrl-C.
 */
export function startOnTerminal(
  args: readonly string[],
  env: Record<string, string> = {},
): ChildProcessWithoutNullStreams {
  const line = [process.execPath, entry(), ...args].map((word) => `'${word}'`).join(" ");
  const child = spawn(TERMINAL, ["-qefc", `exec ${line}`, "/dev/null"], {
    env: { ...process.env, NO_COLOR: undefined, ...env },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

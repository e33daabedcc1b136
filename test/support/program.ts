import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** PATH plus the directories where Debian installs servers, which PATH may lack. */
const PLACES = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/usr/bin"];

/** Returns the path of an installed program, or undefined if it is not installed. */
export function installed(name: string): string | undefined {
  return PLACES.map((place) => join(place, name)).find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Returns why tests that need these programs cannot run here, or undefined if they can. */
export function missing(...names: string[]): string | undefined {
  const absent = names.filter((name) => installed(name) === undefined);
  return absent.length === 0 ? undefined : `not installed: ${absent.join(", ")}`;
}

export interface Finished {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a program to its end with this standard input. The code is -1 if it was killed or could not start. */
export function runProgram(
  name: string,
  args: readonly string[],
  input = "",
  timeoutMs = 20_000,
): Promise<Finished> {
  const { promise, resolve } = Promise.withResolvers<Finished>();
  const child = execFile(
    installed(name) ?? name,
    [...args],
    { timeout: timeoutMs, maxBuffer: 64 * 1024 * 1024 },
    (error, out, err) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
      resolve({ code, out, err });
    },
  );
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(input);
  return promise;
}

export interface RunningProgram extends AsyncDisposable {
  /** Standard output and standard error so far. */
  readonly output: () => string;
  readonly exited: () => boolean;
}

/** Starts a program that runs until it is disposed of, with SIGTERM, and SIGKILL three seconds later. */
export function startProgram(name: string, args: readonly string[]): RunningProgram {
  const child = spawn(installed(name) ?? name, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  }
  const exit = once(child, "close");
  return {
    output: () => output,
    exited: () => ended(child),
    async [Symbol.asyncDispose]() {
      const timer = setTimeout(() => child.kill("SIGKILL"), 3_000);
      child.kill("SIGTERM");
      await exit;
      clearTimeout(timer);
    },
  };
}

function ended({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null;
}

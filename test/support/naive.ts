import { fileURLToPath } from "node:url";
import { startChild } from "./child.ts";
import type { Gate } from "./gate.ts";

export interface NaiveProxy extends Gate {
  /** Resolves when the child ended by itself: it crashed. */
  readonly exit: Promise<number | NodeJS.Signals>;
  /** What it has printed so far, by line: its port, and what it logs. */
  readonly lines: readonly string[];
  stderr(): string;
}

const SCRIPT = fileURLToPath(new URL("naive-proxy.ts", import.meta.url));

/** Starts `naive-proxy.ts` in front of a target. Its one token is "good", and what begins with /public needs none. */
export async function startNaiveProxy(
  target: string,
  options: Record<string, unknown> = {},
  env: Record<string, string> = {},
): Promise<NaiveProxy> {
  const child = startChild(SCRIPT, [target, JSON.stringify(options)], env);
  const port = await child.line((line) => Number(line) || undefined);
  return {
    port,
    token: "good",
    exit: child.exit,
    exited: child.exited,
    lines: child.lines,
    stderr: child.stderr,
    close: child.kill,
    [Symbol.asyncDispose]: child.kill,
  };
}

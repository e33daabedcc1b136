import { fileURLToPath } from "node:url";
import { startChild } from "./child.ts";
import type { Gate } from "./gate.ts";

export interface NaiveProxy extends Gate {
  /** Resolves when the child ends by itself, which means that it crashed. */
  readonly exit: Promise<number | NodeJS.Signals>;
  /** The lines printed so far: its port and its log. */
  readonly lines: readonly string[];
  stderr(): string;
}

const SCRIPT = fileURLToPath(new URL("naive-proxy.ts", import.meta.url));

/** Starts `naive-proxy.ts` in front of a target. Its only token is "good"; paths that start with /public need none. */
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

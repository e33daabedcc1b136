import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Result, Verdict } from "../../src/selftest/check-result.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { command, type Ended } from "./command.ts";

export interface SelftestRun extends Ended {
  readonly results: readonly Result[];
  /** Names with a verdict. */
  names(verdict: Verdict): string[];
  /** Name and what was seen, for a readable difference. */
  told(verdict: Verdict): string[];
}

/** Runs the command with `--format json`. */
export async function selftestRun(args: readonly string[]): Promise<SelftestRun> {
  const ended = await command(["selftest", "--format", "json", ...args]);
  const results = JSON.parse(ended.out) as Result[];
  const of = (verdict: Verdict): Result[] => results.filter((each) => each.verdict === verdict);
  return {
    ...ended,
    results,
    names: (verdict) => of(verdict).map(({ name }) => name),
    told: (verdict) => of(verdict).map(({ name, seen }) => `${name}  ${seen}`),
  };
}

/** A path for a Unix socket: where a backend may listen before anybody knows a port. */
export async function socketPath(): Promise<string> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  return join(directory.path, "backend.sock");
}

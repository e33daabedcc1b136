import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Result, Verdict } from "../../tools/selftest/check-result.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { command, type Ended } from "./command.ts";

export interface SelftestRun extends Ended {
  readonly results: readonly Result[];
  /** Returns the names of the results with a verdict. */
  names(verdict: Verdict): string[];
  /** Names and observations, for a readable diff. */
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

/** Returns a path for a Unix socket, so that the backend's address is known before it listens. */
export async function socketPath(): Promise<string> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  return join(directory.path, "backend.sock");
}

import { DIVISION } from "../../../bench/machine/cores.ts";
import type { ProgramOptions } from "../../deployment/program.ts";

/** Gives the attacked process its own core if there are several, since attackers would take CPU time from it. */
export function ownCore(flags: readonly string[]): Pick<ProgramOptions, "command" | "flags"> {
  if (DIVISION === undefined) return { flags };
  return { command: "taskset", flags: ["-c", DIVISION.proxy, process.execPath, ...flags] };
}

import { DIVISION } from "../../../bench/machine/cores.ts";
import type { ProgramOptions } from "../../deployment/program.ts";

/** Who is attacked has a core that nobody else uses, where there are several: attackers would take the processor from it. */
export function ownCore(flags: readonly string[]): Pick<ProgramOptions, "command" | "flags"> {
  if (DIVISION === undefined) return { flags };
  return { command: "taskset", flags: ["-c", DIVISION.proxy, process.execPath, ...flags] };
}

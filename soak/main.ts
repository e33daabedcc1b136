/** `npm run soak`: runs mixed traffic with faults for minutes to hours, and checks what is left afterwards. */
import { writeFile } from "node:fs/promises";
import { HELP, readArguments } from "./arguments.ts";
import { hasPassed, renderReport } from "./report/report.ts";
import { soak } from "./soak.ts";

/** @returns the exit code. */
async function main(args: readonly string[]): Promise<number> {
  const { help, json, ...options } = readArguments(args);
  if (help) {
    console.log(HELP);
    return 0;
  }
  const stopping = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.on(name, () => {
      if (stopping.signal.aborted) process.exit(130);
      stopping.abort();
    });
  }
  const say = (text: string): void => console.error(text);
  say(`seed ${options.seed}`);
  const report = await soak({ ...options, stop: stopping.signal, say });
  console.log(renderReport(report));
  if (json !== undefined) await writeFile(json, `${JSON.stringify(report, undefined, 2)}\n`);
  return hasPassed(report) ? 0 : 1;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

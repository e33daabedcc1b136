/** `npm run fuzz`: searches for inputs that Sallyport handles wrongly. */
import { HELP, readArguments } from "./arguments.ts";
import { FAULT_KINDS } from "./judge/fault.ts";
import { fuzz, repeat } from "./search/fuzz.ts";
import type { Finding } from "./search/narrow.ts";
import { startSallyport } from "./subject/sallyport.ts";

/** @returns the exit code. */
async function main(args: readonly string[]): Promise<number> {
  const { help, single, seed, seconds, classes } = readArguments(args);
  if (help) {
    console.log(HELP);
    return 0;
  }
  if (single !== undefined) {
    const found = await repeat({ start: startSallyport, seed, ...single });
    console.log(found === undefined ? "Nothing is wrong with this case." : textOf(found));
    return found === undefined ? 0 : 1;
  }
  console.error(`seed ${seed}`);
  const { findings, tally } = await fuzz({
    start: startSallyport,
    ...{ classes, seed, seconds },
    say: (line) => console.error(line),
  });
  for (const finding of findings) console.log(`${textOf(finding)}\n`);
  console.log(`${tally.line()}, ${findings.length} findings, seed ${seed}\n${tally.table()}`);
  return findings.length === 0 ? 0 : 1;
}

function textOf({ name, seed, path, kind, faults, shown, repeated }: Finding): string {
  const all = [...new Set(faults.map((each) => `  ${each.kind}: ${each.detail}`))];
  const luck = repeated ? "" : " (or a concurrent one; alone, it did not repeat)";
  return [
    `${name}: ${FAULT_KINDS[kind]}`,
    ...all,
    `  case${luck}: ${shown}`,
    `  npm run fuzz -- --seed ${seed} --only ${name} --path ${path}`,
  ].join("\n");
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

/** `npm run fuzz`: searches for inputs that Sallyport handles wrongly. */
import { HELP, readArguments } from "./arguments.ts";
import { FAULT_KINDS } from "./judge/fault.ts";
import { fuzz, repeat } from "./search/fuzz.ts";
import type { Finding } from "./search/narrow.ts";
import { startFront } from "./storm/front.ts";
import { storms as playStorms, type StormFinding } from "./storm/storms.ts";
import { startSallyport } from "./subject/sallyport.ts";

/** @returns the exit code. */
async function main(args: readonly string[]): Promise<number> {
  const { help, single, seed, seconds, classes, storms } = readArguments(args);
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
  const say = (line: string): void => console.error(line);
  let found = 0;
  if (classes.length > 0) {
    const share = storms === undefined ? seconds : seconds * (1 - STORMS_SHARE);
    const { findings, tally } = await fuzz({
      start: startSallyport,
      classes,
      seed,
      seconds: share,
      say,
    });
    for (const finding of findings) console.log(`${textOf(finding)}\n`);
    console.log(`${tally.line()}, ${findings.length} findings, seed ${seed}\n${tally.table()}`);
    found += findings.length;
  }
  if (storms !== undefined) {
    const share = classes.length === 0 ? seconds : seconds * STORMS_SHARE;
    const report = await playStorms({
      start: startFront,
      kinds: storms,
      seed,
      seconds: share,
      say,
    });
    for (const finding of report.findings) console.log(`${stormText(finding)}\n`);
    console.log(
      `${report.storms} storms, ${report.attacks} attacks, ${report.innocent} innocent requests, ` +
        `${report.findings.length} findings, seed ${seed}`,
    );
    found += report.findings.length;
  }
  return found === 0 ? 0 : 1;
}

/** The share of the time that storms get beside other classes. */
const STORMS_SHARE = 0.25;

function stormText({ seed, kind, faults, kinds, repeated, after }: StormFinding): string {
  const all = [...new Set(faults.map((each) => `  ${each.kind}: ${each.detail}`))];
  const luck = repeated ? "" : " (it did not repeat)";
  return [
    `storm: ${FAULT_KINDS[kind]}`,
    ...all.slice(0, 10),
    `  after ${after.toFixed(1)} s${luck}`,
    `  npm run fuzz -- --seed ${seed} --only storm --seconds 1 --kinds ${kinds.join(",")}`,
  ].join("\n");
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

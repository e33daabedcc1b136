import { type ClassName, classOf, isMeasured, wantsTls } from "../classes.ts";
import { configurationCheck } from "../configuration/check.ts";
import type { FaultKind } from "../judge/fault.ts";
import type { StartSubject } from "../subject/subject.ts";
import type { FuzzClass } from "./fuzz-class.ts";
import { type Finding, narrowed, TRIES } from "./narrow.ts";
import { MeasuredStage } from "./measured-stage.ts";
import { Rush } from "./rush.ts";
import { Stages } from "./stages.ts";
import { Tally } from "./tally.ts";

export interface FuzzOptions {
  readonly start: StartSubject;
  readonly classes: readonly ClassName[];
  readonly seed: number;
  /** The maximum time, and the maximum number of cases, whichever is reached first. */
  readonly seconds: number;
  readonly cases?: number;
  /** How long to search for a smaller case, for each finding. */
  readonly shrinkingSeconds?: number;
  /** The faults that count; by default, all. */
  readonly kinds?: readonly FaultKind[];
  /** Ends with the first finding. */
  readonly first?: boolean;
  /** Receives a progress line from time to time. */
  readonly say?: (line: string) => void;
}

export interface FuzzReport {
  readonly findings: readonly Finding[];
  readonly tally: Tally;
}

/** Maximum number of findings: further ones would be more of the same. */
const MAX_FINDINGS = 12;

/** Plays generated cases, many at a time, for a number of seconds. Each finding is then repeated alone and made smaller. */
export async function fuzz(options: FuzzOptions): Promise<FuzzReport> {
  const { shrinkingSeconds = 20 } = options;
  await using stages = await Stages.open(options.start, options.classes.some(wantsTls));
  await using measured = new MeasuredStage(options.start);
  await using check = await configurationCheck();
  const classes = new Map<ClassName, FuzzClass>(
    options.classes.map((name) => [name, classOf(name, { stages, measured, check })]),
  );
  if (options.classes.some(isMeasured)) await measured.ready();
  const tally = new Tally(options.classes);
  const findings: Finding[] = [];
  const rush = new Rush({ ...options, stages, classes, tally });
  const deadline = performance.now() + options.seconds * 1_000;
  while (performance.now() < deadline && !rush.done && findings.length < MAX_FINDINGS) {
    const suspicion = await rush.until(deadline);
    if (suspicion !== undefined) {
      const found = await narrowed(suspicion, classes, shrinkingSeconds * 1_000);
      if (found !== undefined) {
        rush.ignore(found);
        findings.push(found);
        options.say?.(`found: ${found.name} ${found.kind}`);
        if (options.first === true) break;
      }
    }
    await stages.revive();
  }
  return { findings, tally };
}

/** Plays one case again, by its seed and path, without making it smaller. */
export async function repeat(
  options: Pick<FuzzOptions, "start" | "seed"> & {
    readonly name: ClassName;
    readonly path: string;
  },
): Promise<Finding | undefined> {
  const { start, seed, name, path } = options;
  await using stages = await Stages.open(start, wantsTls(name));
  await using measured = new MeasuredStage(start);
  await using check = await configurationCheck();
  const fuzzed = classOf(name, { stages, measured, check });
  for (let turn = 0; turn < TRIES; turn += 1) {
    const shrunk = await fuzzed.repeat(seed, path, { counts: () => true, shrinkingMs: 0 });
    const kind = shrunk?.faults[0]?.kind;
    if (shrunk === undefined || kind === undefined) continue;
    return { name, seed, kind, repeated: true, ...shrunk };
  }
  return undefined;
}

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
  /** The most that it may take, and the most cases, whichever comes first. */
  readonly seconds: number;
  readonly cases?: number;
  /** How long a smaller case is looked for, for each finding. */
  readonly shrinkingSeconds?: number;
  /** The faults that count; all when left out. */
  readonly kinds?: readonly FaultKind[];
  /** Ends with the first finding. */
  readonly first?: boolean;
  /** Gets a line now and then. */
  readonly say?: (line: string) => void;
}

export interface FuzzReport {
  readonly findings: readonly Finding[];
  readonly tally: Tally;
}

/** Findings beyond these are more of the same. */
const MOST_FINDINGS = 12;

/** Plays generated cases, many at a time, for so many seconds; each finding is made small, alone. */
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
  while (performance.now() < deadline && !rush.done && findings.length < MOST_FINDINGS) {
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

/** Plays one case again, by its seed and path, as it is. */
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

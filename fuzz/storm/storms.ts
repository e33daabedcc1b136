import type { Fault, FaultKind } from "../judge/fault.ts";
import type { StartFront } from "./front.ts";
import type { Kind } from "./kinds.ts";
import { storm } from "./storm.ts";

export interface StormsOptions {
  readonly start: StartFront;
  /** Of the first storm; each further one has the next. */
  readonly seed: number;
  readonly seconds: number;
  readonly kinds: readonly Kind[];
  /** The maximum number of storms. */
  readonly storms?: number;
  /** How long a storm lasts, in milliseconds. */
  readonly lastsMs?: number;
  /** How long to search for fewer kinds that show a finding, in seconds. */
  readonly narrowingSeconds?: number;
  /** The faults that count; by default, all. */
  readonly counted?: readonly FaultKind[];
  readonly say?: (line: string) => void;
}

export interface StormFinding {
  readonly seed: number;
  readonly kind: FaultKind;
  readonly faults: readonly Fault[];
  /** The kinds that suffice. */
  readonly kinds: readonly Kind[];
  /** Whether a second storm showed it, too. */
  readonly repeated: boolean;
  /** How long its storm took, in seconds. */
  readonly after: number;
}

export interface StormsReport {
  readonly findings: readonly StormFinding[];
  readonly storms: number;
  readonly attacks: number;
  readonly innocent: number;
}

/** Lets storm follow upon storm. Each fault is narrowed down once. */
export async function storms(options: StormsOptions): Promise<StormsReport> {
  const { seed, seconds, kinds, narrowingSeconds = 60, say } = options;
  const findings: StormFinding[] = [];
  const known = new Set<string>();
  const counts = { storms: 0, attacks: 0, innocent: 0 };
  let deadline = performance.now() + seconds * 1_000;
  while (performance.now() < deadline && counts.storms < (options.storms ?? Infinity)) {
    const one = { ...options, seed: seed + counts.storms, kinds: new Set(kinds) };
    const { faults, attacks, innocent, tookMs } = await storm(one);
    counts.storms += 1;
    counts.attacks += attacks;
    counts.innocent += innocent;
    say?.(
      `storm ${one.seed}: ${attacks} attacks, ${innocent} innocent requests, ${faults.length} faults`,
    );
    for (const kind of new Set(faults.map((each) => each.kind))) {
      if (options.counted?.includes(kind) === false) continue;
      const sign = signOf(faults, kind);
      if (known.has(sign)) continue;
      known.add(sign);
      const began = performance.now();
      const shows = (others: readonly Fault[]): boolean => signOf(others, kind) === sign;
      const few = await narrowed(options, one.seed, shows, narrowingSeconds * 1_000);
      deadline += performance.now() - began;
      findings.push({
        seed: one.seed,
        kind,
        after: tookMs / 1_000,
        kinds: few ?? kinds,
        repeated: few !== undefined,
        faults: faults.filter((each) => each.kind === kind),
      });
    }
  }
  return { findings, ...counts };
}

/** Returns what is the same in two storms with the same fault: of a trouble its text, which no number distinguishes. */
function signOf(faults: readonly Fault[], kind: FaultKind): string {
  const first = faults.find((each) => each.kind === kind)?.detail;
  if (kind !== "trouble" || first === undefined) return first === undefined ? "" : kind;
  return `${kind} ${first.replaceAll(/\d+/g, "").slice(0, 300)}`;
}

/** Leaves out kinds as long as the same storm shows the same fault. @returns undefined if it shows it never again. */
async function narrowed(
  options: StormsOptions,
  seed: number,
  shows: (faults: readonly Fault[]) => boolean,
  limitMs: number,
): Promise<readonly Kind[] | undefined> {
  const until = performance.now() + limitMs;
  let few = options.kinds;
  let repeated = false;
  for (
    let size = Math.ceil(few.length / 2);
    size >= 1;
    size = size === 1 ? 0 : Math.ceil(size / 2)
  ) {
    for (let from = 0; from < few.length;) {
      if (performance.now() > until) return repeated ? few : undefined;
      const fewer = few.filter((_, i) => i < from || i >= from + size);
      const { faults } = await storm({ ...options, seed, kinds: new Set(fewer) });
      if (shows(faults)) {
        few = fewer;
        repeated = true;
      } else from += size;
    }
  }
  return repeated ? few : undefined;
}

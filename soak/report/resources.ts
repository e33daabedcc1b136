import { openDescriptors } from "../machine/process-state.ts";
import { grownResources, type Rest } from "../machine/rest.ts";
import type { Sample } from "../machine/samples.ts";
import { fitTrend, lowest } from "../machine/trend.ts";
import { type Finding, finding } from "./finding.ts";

const MIB = 1024 * 1024;

/**
 * How much resident memory may grow above the base. V8 lets its heap grow to twice the live data before it collects, and
 * the allocator retains freed memory; the base is measured after seconds of traffic, when neither has reached its size.
 */
const GROWTH_MIB = 96;
/** How much live data on the heap may grow above the base: V8 still compiles code, and stores feedback for it. */
const HELD_MIB = 8;
/** Growth per hour that counts as a leak if it is certain: twice its standard error is subtracted first. */
const LEAK_MIB_PER_HOUR = 48;
/** The minimum length of a run for a meaningful trend: full collections are minutes apart. */
const TREND_SECONDS = 1_500;
/** The first part of the run, which counts as warming up. */
const WARMING_SHARE = 0.4;
const STRETCHES = 12;
/** The limit of the median of the event loop's delay, in seconds. */
const LAG_SECONDS = 0.25;

export interface Resources {
  /** After warming up, and after the traffic has ended. */
  readonly base: Rest;
  readonly end: Rest;
  readonly samples: readonly Sample[];
}

/** Judges whether all resources that the traffic used were released. */
export function judgeResources({ base, end, samples }: Resources): readonly Finding[] {
  const before = openDescriptors(base.state);
  const after = openDescriptors(end.state);
  const sockets = end.state.descriptors["socket"] ?? 0;
  const grownMib = (end.state.residentBytes - base.state.residentBytes) / MIB;
  const lags = samples
    .map(({ loopLagSeconds }) => loopLagSeconds)
    .filter(Number.isFinite)
    .toSorted((a, b) => a - b);
  const lag = lags[Math.floor(lags.length / 2)] ?? 0;
  const unready = samples.filter(({ ready }) => !ready).length;
  const more = grownResources(base, end);
  return [
    atRest("at rest after warming up", base),
    atRest("at rest when all clients had left", end),
    finding("descriptors", after <= before, after, before, kindsOf(end)),
    finding(
      "sockets",
      sockets <= (base.state.descriptors["socket"] ?? 0),
      sockets,
      base.state.descriptors["socket"] ?? 0,
    ),
    finding(
      "threads",
      end.state.threads <= base.state.threads,
      end.state.threads,
      base.state.threads,
    ),
    finding(
      "timers and handles",
      more.length === 0,
      wordsOf(end.resources),
      wordsOf(base.resources),
      more,
    ),
    finding(
      "resident memory at the end",
      grownMib <= GROWTH_MIB,
      `${mib(end.state.residentBytes)} MiB`,
      `${mib(base.state.residentBytes)} + ${GROWTH_MIB} MiB`,
    ),
    judgeHeld(base, end, samples.at(-1)?.seconds ?? 0),
    judgeTrend("resident memory, trend", samples, ({ residentBytes }) => residentBytes),
    judgeTrend("heap in use, trend", samples, ({ heapBytes }) => heapBytes),
    finding(
      "event loop's delay (p99), median",
      lag <= LAG_SECONDS,
      `${Math.round(lag * 1000)} ms`,
      `${LAG_SECONDS * 1000} ms`,
    ),
    finding("looks at which it was not ready", unready === 0, unready, `0 of ${samples.length}`),
  ];
}

/** Judges the live data on the heap, which is exact, so that even a short run can detect a leak. */
function judgeHeld(base: Rest, end: Rest, seconds: number): Finding {
  const grownMib = (end.liveHeapBytes - base.liveHeapBytes) / MIB;
  const anHour = seconds === 0 ? 0 : (grownMib * 3600) / seconds;
  return finding(
    "held on the heap at the end",
    grownMib <= HELD_MIB,
    `${mib(end.liveHeapBytes)} MiB (${anHour.toFixed(1)} MiB/hour)`,
    `${mib(base.liveHeapBytes)} + ${HELD_MIB} MiB`,
  );
}

function judgeTrend(
  property: string,
  samples: readonly Sample[],
  bytesOf: (sample: Sample) => number,
): Finding {
  const seconds = samples.at(-1)?.seconds ?? 0;
  const points = samples
    .filter((sample) => sample.seconds >= seconds * WARMING_SHARE && sample.ready)
    .map((sample) => ({ x: sample.seconds / 3600, y: bytesOf(sample) / MIB }));
  const trend = fitTrend(lowest(points, STRETCHES));
  const limit = `${LEAK_MIB_PER_HOUR} MiB/hour`;
  if (trend === undefined)
    return { ...finding(property, true, "unknown", limit), verdict: "short" };
  const { slope, error } = trend;
  const certain = slope - 2 * error;
  const figure = `${slope.toFixed(1)} ± ${(2 * error).toFixed(1)} MiB/hour`;
  const judged = finding(property, certain <= LEAK_MIB_PER_HOUR, figure, limit);
  return seconds < TREND_SECONDS ? { ...judged, verdict: "short" } : judged;
}

function atRest(property: string, { restless }: Rest): Finding {
  const rests = restless.length === 0;
  return finding(property, rests, rests ? "yes" : "no", "yes", restless);
}

function kindsOf({ state }: Rest): string[] {
  return [wordsOf(state.descriptors)];
}

function wordsOf(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");
}

function mib(bytes: number): string {
  return (bytes / MIB).toFixed(1);
}

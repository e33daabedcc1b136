import { monitorEventLoopDelay } from "node:perf_hooks";
import { Gauge, type Registry } from "prom-client";

/**
 * A resolution, in milliseconds, that in effect disables the timer of prom-client's own histogram: a timer of 10 ms
 * costs an idle process 4 ms of CPU time per second.
 */
export const NEVER_MS = 2 ** 31 - 1;

/** The resolution for Node 24, which cannot measure each turn, in milliseconds. */
const RESOLUTION_MS = 10;

type LoopHistogram = ReturnType<typeof monitorEventLoopDelay>;

const STATISTICS: readonly (readonly [
  name: string,
  help: string,
  (histogram: LoopHistogram) => number,
])[] = [
  ["min", "The minimum recorded event loop delay.", ({ min }) => min],
  ["max", "The maximum recorded event loop delay.", ({ max }) => max],
  ["mean", "The mean of the recorded event loop delays.", ({ mean }) => mean],
  ["stddev", "The standard deviation of the recorded event loop delays.", ({ stddev }) => stddev],
  ...([50, 90, 99] as const).map(
    (percentile) =>
      [
        `p${percentile}`,
        `The ${percentile}th percentile of the recorded event loop delays.`,
        (histogram: LoopHistogram) => histogram.percentile(percentile),
      ] as const,
  ),
];

/**
 * Replaces prom-client's gauges `nodejs_eventloop_lag_…_seconds` with gauges of the same names that measure each turn
 * of the event loop, so that an idle process costs nothing. They cover the time since the previous scrape.
 */
export function measureEventLoop(registry: Registry): void {
  const histogram = monitorEventLoopDelay({ samplePerIteration: true, resolution: RESOLUTION_MS });
  // Enabled within a turn: otherwise the first sample would be the wait until the next turn.
  setImmediate(() => histogram.enable());
  for (const [index, [statistic, help, read]] of STATISTICS.entries()) {
    const name = `nodejs_eventloop_lag_${statistic}_seconds`;
    registry.removeSingleMetric(name);
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(histogram.count === 0 ? 0 : read(histogram) / 1e9);
        // The gauges are read in this order.
        if (index === STATISTICS.length - 1) histogram.reset();
      },
    });
  }
}

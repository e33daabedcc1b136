import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { createMetrics } from "../../src/observe/metrics/metrics.ts";

const busy = (ms: number): void => {
  const end = performance.now() + ms;
  while (performance.now() < end);
};

it("reports a long turn of the event loop, but not an idle one", async () => {
  const metrics = createMetrics({ routes: [], upstreams: [], version: "0" });
  const longest = async (): Promise<number> =>
    Number(/^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(await metrics.text())?.[1]);
  await delay(100);
  await longest();
  await delay(10);
  busy(300);
  await delay(10);
  expect(await longest()).toBeGreaterThanOrEqual(0.29);
  await delay(600);
  // Waiting for the timer does not count, whatever else this machine does meanwhile.
  expect(await longest()).toBeLessThan(0.5);
});

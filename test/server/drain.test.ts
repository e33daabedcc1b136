import { expect, test } from "vitest";
import type { Log } from "../../src/core/log.ts";
import { drain, type DrainOptions } from "../../src/server/listener/draining.ts";
import { until } from "../support/until.ts";

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} };

/** Creates a listener that records its calls, and whose connections end when the test says so. */
function listening() {
  const told: string[] = [];
  const ended = Promise.withResolvers<void>();
  const listener: DrainOptions["listener"] = {
    announceClose: () => void told.push("announceClose"),
    close() {
      told.push("close");
      return ended.promise;
    },
    closeIdle: () => void told.push("closeIdle"),
    refuseAll: () => void told.push("refuseAll"),
    closeAll() {
      told.push("closeAll");
      ended.resolve();
    },
  };
  const closeWebSockets = (): void => void told.push("closeWebSockets");
  return { told, end: ended.resolve, options: { listener, closeWebSockets, log: silent } };
}

test("accepts nothing new, closes WebSockets, and waits for running requests", async () => {
  const { told, end, options } = listening();
  const draining = drain({ ...options, delay: 0, timeout: 60_000 });
  await until(() => told.length >= 4);
  expect(told.slice(0, 4)).toEqual(["announceClose", "close", "closeIdle", "closeWebSockets"]);
  end();
  expect(await draining).toBe(true);
  expect(told).not.toContain("closeAll");
});

test("does nothing before the delay is over", async () => {
  const { told, end, options } = listening();
  end();
  const started = performance.now();
  const draining = drain({ ...options, delay: 150, timeout: 1000 });
  await Promise.resolve();
  expect(told).toEqual(["announceClose"]);
  expect(await draining).toBe(true);
  expect(performance.now() - started).toBeGreaterThanOrEqual(145);
});

test("ends running requests after the timeout, and returns false", async () => {
  const { told, options } = listening();
  expect(await drain({ ...options, delay: 0, timeout: 20 })).toBe(false);
  expect(told.at(-1)).toBe("closeAll");
});

test("keeps closing idle connections until all have ended", async () => {
  const { told, end, options } = listening();
  const draining = drain({ ...options, delay: 0, timeout: 60_000 });
  await until(() => told.filter((each) => each === "closeIdle").length >= 3);
  end();
  expect(await draining).toBe(true);
  const count = told.length;
  await drain({ ...listening().options, delay: 0, timeout: 250 });
  expect(told.length).toBe(count);
});

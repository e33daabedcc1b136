import { expect } from "vitest";
import type { LoadOrder, LoadReport } from "./client/load.ts";

/** 120 requests per second over 40 connections at most: kept ones, bodies, and new ones. */
export const STREAMS: LoadOrder["streams"] = [
  { name: "kept GET", method: "GET", perSecond: 60, connections: 15, kept: true },
  { name: "kept POST", method: "POST", perSecond: 30, connections: 10, kept: true },
  { name: "new GET", method: "GET", perSecond: 30, connections: 15, kept: false },
];

/** @param fewest requests that must have been sent, so that the test has shown something. */
export function expectNothingLost(what: string, report: LoadReport, fewest: number): void {
  tell(what, report);
  expect(report.failures).toEqual([]);
  expect(report.failed).toBe(0);
  expect(report.sent).toBeGreaterThan(fewest);
  expect(report.longestGapMs).toBeLessThan(5_000);
}

/** Prints the figures: a run against a cluster is also a measurement. */
export function tell(what: string, report: LoadReport): void {
  const { sent, failed, longestGapMs, p50Ms, p99Ms } = report;
  const times = `p50 ${p50Ms} ms, p99 ${p99Ms} ms, longest without a success ${longestGapMs} ms`;
  console.log(`${what}: ${sent} requests, ${failed} failed; ${times}`);
}

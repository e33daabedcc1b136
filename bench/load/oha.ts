import { run } from "../machine/children.ts";
import { needProgram } from "../machine/programs.ts";
import { CONNECTIONS } from "./wrk.ts";

/** Requests at a fixed rate, whether or not earlier ones were answered (an open loop), or as fast as they are answered. */
export interface TimedLoad {
  readonly port: number;
  readonly tls: boolean;
  readonly token: string;
  /** Undefined for as fast as they are answered. */
  readonly perSecond: number | undefined;
  readonly seconds: number;
}

export interface TimedLoadResult {
  readonly requests: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  /** The number of failed requests, and of answers with a status other than 200. */
  readonly errors: number;
}

/**
 * Sends them with oha over 32 keep-alive connections. At a fixed rate, each is timed from when it was due, not from when a
 * connection was free (`--latency-correction`).
 */
export async function timedLoad(options: TimedLoad): Promise<TimedLoadResult> {
  const { port, tls, token, perSecond, seconds } = options;
  const pace = perSecond === undefined ? [] : ["--latency-correction", "-q", String(perSecond)];
  const output = await run(
    needProgram("oha"),
    [
      ...["--no-tui", "--output-format", "json", "--disable-compression", ...pace],
      ...["-c", String(CONNECTIONS), "-z", `${seconds}s`, "--insecure"],
      ...["-H", `Authorization: Bearer ${token}`],
      `${tls ? "https" : "http"}://127.0.0.1:${port}/orders/4711`,
    ],
    (seconds + 30) * 1000,
  );
  return read(output);
}

interface Report {
  readonly latencyPercentiles: Readonly<Record<"p50" | "p99" | "p99.9", number>>;
  readonly statusCodeDistribution: Readonly<Record<string, number>>;
  readonly errorDistribution: Readonly<Record<string, number>>;
}

function read(output: string): TimedLoadResult {
  const report: Report = JSON.parse(output);
  const { latencyPercentiles: latency, statusCodeDistribution, errorDistribution } = report;
  const answered = sum(statusCodeDistribution);
  // These were still in flight at the end.
  const { "aborted due to deadline": _cut, ...failed } = errorDistribution;
  return {
    requests: answered,
    p50Ms: latency.p50 * 1000,
    p99Ms: latency.p99 * 1000,
    p999Ms: latency["p99.9"] * 1000,
    errors: answered - (statusCodeDistribution["200"] ?? 0) + sum(failed),
  };
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((all, count) => all + count, 0);
}

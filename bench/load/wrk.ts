import { join } from "node:path";
import { run } from "../machine/children.ts";
import { needProgram } from "../machine/programs.ts";

export interface Load {
  readonly port: number;
  readonly tls: boolean;
  /** A file with one token on each line, or undefined to send none. */
  readonly tokens: string | undefined;
  /** The line to begin with if there are several. */
  readonly from?: number;
  /** Bytes of a JSON body to post; by default, a GET is sent. */
  readonly bodyBytes?: number;
  readonly connections?: number;
  readonly seconds: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The number of lost or refused connections, and of answers that are not 2xx. */
  readonly errors: number;
}

export const CONNECTIONS = 32;
const SCRIPT = join(import.meta.dirname, "requests.lua");

/** Sends requests on keep-alive connections, each as soon as the previous one was answered, for whole seconds. */
export async function load(options: Load): Promise<LoadResult> {
  const { port, tls, tokens = "-", from = 0, bodyBytes = 0, seconds } = options;
  const { connections = CONNECTIONS } = options;
  const flags = ["-t1", `-c${connections}`, `-d${seconds}s`, "--timeout", "10s", "--latency"];
  const url = `${tls ? "https" : "http"}://127.0.0.1:${port}/orders/4711`;
  const output = await run(
    needProgram("wrk"),
    [...flags, "-s", SCRIPT, url, "--", tokens, String(from), String(bodyBytes)],
    (seconds + 30) * 1000,
  );
  return read(output);
}

function read(output: string): LoadResult {
  const line = output.split("\n").find((line) => line.startsWith("RESULT ")) ?? "RESULT null";
  const result: unknown = JSON.parse(line.slice("RESULT ".length));
  if (!isResult(result)) throw new Error(`wrk reported no result:\n${output}`);
  const { requests, microseconds, p50, p99, failed, refused } = result;
  return {
    requests,
    perSecond: requests / (microseconds / 1e6),
    p50Ms: p50 / 1000,
    p99Ms: p99 / 1000,
    errors: failed + refused,
  };
}

type Figures = Record<"requests" | "microseconds" | "p50" | "p99" | "failed" | "refused", number>;

function isResult(value: unknown): value is Figures {
  return typeof value === "object" && value !== null && "requests" in value;
}

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../machine/children.ts";
import { findProgram } from "../machine/programs.ts";
import { GRPC_ANSWER, GRPC_QUESTION } from "../backends/grpc-answer.ts";
import type { Setting } from "../setting/setting.ts";
import { CONNECTIONS, type LoadResult } from "./wrk.ts";

/** Requests by HTTP/2: small GETs, or unary calls of gRPC. */
export interface Http2Load {
  readonly port: number;
  readonly tls: boolean;
  readonly token: string;
  readonly grpc: boolean;
  /** How many in all. */
  readonly requests: number;
}

/** On each connection. */
const STREAMS = 10;
export const GRPC_PATH = "/orders.v1.Orders/Get";

/** Why there can be no such load; undefined if there can. */
export function missingHttp2Load(): string | undefined {
  if (findProgram("h2load") !== undefined) return undefined;
  return "h2load is not installed (apt-get install nghttp2-client)";
}

const TIMEOUT_MS = 90_000;

/**
 * Sends so many requests on 32 connections, ten at a time on each, as fast as they are answered. A number, not a time: h2load
 * does not end when its time is over before a connection's handshake is.
 */
export async function loadHttp2(setting: Setting, options: Http2Load): Promise<LoadResult> {
  const { port, tls, token, grpc, requests } = options;
  const log = join(setting.directory, "h2load.log");
  const question = join(setting.directory, "question.grpc");
  await setting.write("question.grpc", GRPC_QUESTION.toString("latin1"));
  // It appends.
  await setting.write("h2load.log", "");
  const call = ["-d", question, "-H", "content-type: application/grpc", "-H", "te: trailers"];
  const output = await run(
    "h2load",
    [
      ...["-t1", `-c${CONNECTIONS}`, `-m${STREAMS}`, `-n${requests}`, `--log-file=${log}`],
      ...["-H", `authorization: Bearer ${token}`, ...(grpc ? call : [])],
      `${tls ? "https" : "http"}://127.0.0.1:${port}${grpc ? GRPC_PATH : "/orders/4711"}`,
    ],
    TIMEOUT_MS,
  );
  return read(output, await readFile(log, "latin1"), grpc);
}

function read(output: string, log: string, grpc: boolean): LoadResult {
  const requests = counted(/ (\d+) done,/, output);
  const succeeded = counted(/^status codes: (\d+) 2xx/m, output);
  const data = counted(/\((\d+)\) data$/m, output);
  // A call that is refused has status 200 and no message.
  const answered = grpc ? Math.min(succeeded, Math.floor(data / GRPC_ANSWER.length)) : succeeded;
  const times = Float64Array.from(log.trimEnd().split("\n"), (line) => Number(line.split("\t")[2]));
  times.sort();
  const percentile = (share: number): number =>
    (times[Math.ceil(times.length * share) - 1] ?? 0) / 1000;
  return {
    requests,
    perSecond: counted(/, ([\d.]+) req\/s/, output),
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
    errors: Math.max(0, requests - answered),
  };
}

function counted(pattern: RegExp, output: string): number {
  const found = pattern.exec(output);
  if (found === null) throw new Error(`h2load told no result:\n${output}`);
  return Number(found[1]);
}

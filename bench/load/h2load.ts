import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "../machine/children.ts";
import { findProgram } from "../machine/programs.ts";
import { GRPC_ANSWER, GRPC_REQUEST } from "../backends/grpc-answer.ts";
import type { Setting } from "../setting/setting.ts";
import { CONNECTIONS, type LoadResult } from "./wrk.ts";

/** Requests over HTTP/2: small GETs, or unary gRPC calls. */
export interface Http2Load {
  readonly port: number;
  readonly tls: boolean;
  readonly token: string;
  readonly grpc: boolean;
  /** The total number of requests. */
  readonly requests: number;
}

/** Concurrent streams per connection. */
const STREAMS = 10;
export const GRPC_PATH = "/orders.v1.Orders/Get";

/** Returns why this load is not possible; undefined if it is. */
export function missingHttp2Load(): string | undefined {
  if (findProgram("h2load") !== undefined) return undefined;
  return "h2load is not installed (apt-get install nghttp2-client)";
}

const TIMEOUT_MS = 90_000;

/**
 * Sends requests on 32 connections, ten at a time on each, as fast as they are answered. Their number is fixed, not the time:
 * h2load does not end if its time is over before the handshake of a connection is.
 */
export async function loadHttp2(setting: Setting, options: Http2Load): Promise<LoadResult> {
  const { port, tls, token, grpc, requests } = options;
  const log = join(setting.directory, "h2load.log");
  const question = join(setting.directory, "question.grpc");
  await setting.write("question.grpc", GRPC_REQUEST.toString("latin1"));
  // h2load appends to it.
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
  // A refused call has status 200 and no message.
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
  if (found === null) throw new Error(`h2load reported no result:\n${output}`);
  return Number(found[1]);
}

import { connect } from "node:net";
import type { Configuration } from "../../config/configuration.ts";
import { failureReason } from "../http/failures.ts";
import { type BackendQuery, sendQuery, sendQueryOnce, type ShortAnswer } from "../http2/query.ts";
import type { Target } from "./target.ts";
import type { HealthOptions, UpstreamOptions } from "./upstreams.ts";
import { grpcFrame, grpcMessage } from "../../core/request/grpc.ts";
import type { Clock } from "../../lib/clock.ts";
import { sharedFor, SingleFlight } from "../../lib/async/single-flight.ts";
import { firstOriginOf, originsOf } from "./target-list.ts";
import { originOf, type TargetOrigin } from "./target-origin.ts";
import { type AdminPage, type AdminResponse, PLAIN_TEXT } from "../../core/admin-page.ts";
import type { UpstreamErrorReason } from "../../core/request/outcome.ts";
import { openPool } from "./open-pool.ts";

type Probe = Exclude<Configuration["admin"], string>["probes"][number];

/** The time limit for a complete response, in milliseconds. */
const TIMEOUT_MS = 10_000;
/** Maximum bytes of the backend's text to show: a kubelet stores 10 KiB, people read less. */
const PROBED_BYTES = 4 * 1024;
const AGENT = ["User-Agent", "sallyport-probe"];
/** Statuses without a body, or even a length (RFC 9110 §8.6): shown as a plain success. */
const BODILESS = [204, 205, 304];

/**
 * Creates a page that queries a backend reachable only from this machine. It sends one fixed request, with nothing
 * from the client, and returns the status and the beginning of the text. Concurrent requests share one query.
 *
 * @param upstream its first target is queried.
 * @param limitMs the time limit for a complete response.
 */
export function probePage(
  { path, target = path }: Omit<Probe, "upstream">,
  upstream: UpstreamOptions,
  limitMs = TIMEOUT_MS,
): AdminPage {
  const flights = new SingleFlight<AdminResponse>();
  const answer = (): Promise<AdminResponse> =>
    flights.run(path, () => respondInTime(upstream, target, limitMs));
  return { path, method: "GET", audience: "everybody", answer };
}

/** Always resolves in time, whatever the backend does, since several clients may be waiting. */
function respondInTime(
  upstream: UpstreamOptions,
  path: string,
  limitMs: number,
): Promise<AdminResponse> {
  const limit = AbortSignal.timeout(limitMs);
  const { promise, resolve } = Promise.withResolvers<AdminResponse>();
  // Runs before the request is aborted: a truncated response can look complete.
  limit.addEventListener("abort", () => resolve(failed(504, "response_timeout")), { once: true });
  void ask(upstream, path, limit).then(resolve);
  return promise;
}

async function ask(
  upstream: UpstreamOptions,
  path: string,
  limit: AbortSignal,
): Promise<AdminResponse> {
  try {
    const origin = firstOriginOf(upstream);
    const pool = openPool(origin, upstream.protocol, TIMEOUT_MS);
    const query = probeQuery(origin, path);
    const { status, body } = await sendQueryOnce(pool, query, limit, PROBED_BYTES);
    // The parser accepts any three digits; RFC 9110 §15 ends at 599.
    if (status > 599) return failed(502, "invalid_response");
    const shown = BODILESS.includes(status) ? 200 : status;
    return { status: shown, type: PLAIN_TEXT, body: body.toString("utf8") };
  } catch (error) {
    return failed(502, failureReason(error));
  }
}

function probeQuery({ authority }: TargetOrigin, path: string): BackendQuery {
  const headers = ["Host", authority, ...AGENT, "Accept", "*/*"];
  return { method: "GET", path, headers };
}

function failed(status: number, reason: UpstreamErrorReason): AdminResponse {
  return { status, type: PLAIN_TEXT, body: `${reason}\n` };
}

/** The time limit for a connection, in milliseconds; a kubelet waits for a second by default. */
const CONNECT_MS = 800;
/** How long a result is cached, in milliseconds, since anyone who reaches the port may query it at any rate. */
const CACHE_MS = 1_000;

/** For each upstream `ok`, or why no target accepts a connection. */
export type Reachability = ReadonlyMap<string, string>;

/**
 * Creates a check of whether backends accept connections. It sends no request and starts no TLS handshake.
 *
 * @returns a function that resolves within a second whatever the backends do, and never rejects.
 */
export function createReachabilityCheck(
  upstreams: readonly UpstreamOptions[],
  clock: Clock,
): () => Promise<Reachability> {
  const rows = upstreams.map((upstream) => [upstream.name, originsOf(upstream)] as const);
  return sharedFor(CACHE_MS, clock, async () => {
    const states = rows.map(async ([name, origins]) => [name, await firstOf(origins)] as const);
    return new Map(await Promise.all(states));
  });
}

/** Returns `ok`, or why the target of an address accepts no connection. Resolves within a second, never rejects. */
export function reachState(address: string): Promise<string> {
  return stateOf(originOf(address));
}

async function firstOf(origins: readonly TargetOrigin[]): Promise<string> {
  const states = await Promise.all(origins.map(stateOf));
  return states.find((state) => state === "ok") ?? states[0] ?? "no target";
}

function stateOf({ hostname, port, socketPath, lookup }: TargetOrigin): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const place = socketPath === undefined ? { host: hostname, port, lookup } : { path: socketPath };
  const socket = connect(place);
  const timer = setTimeout(resolve, CONNECT_MS, "no connection in time");
  socket.once("connect", () => resolve("ok"));
  socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "failed"));
  return promise.finally(() => {
    clearTimeout(timer);
    socket.destroy();
  });
}

/**
 * The request and the response of grpc.health.v1 (github.com/grpc/grpc, doc/health-checking.md). Each message has
 * one field, so a protobuf library would be larger than this code.
 */

/** HealthCheckRequest: field 1, the name of the service. HealthCheckResponse: field 1, the status, where 1 is SERVING. */
const SERVICE_FIELD = 0x0a;
const STATUS_FIELD = 0x08;
const SERVING = 1;

/** Creates the request of a health check. @param service its name, up to 127 bytes; empty for the entire server. */
function healthQuery({ authority }: TargetOrigin, service: string): BackendQuery {
  const name = Buffer.from(service);
  const message =
    name.length === 0 ? name : Buffer.concat([Buffer.from([SERVICE_FIELD, name.length]), name]);
  const headers = ["Host", authority, ...AGENT, "Content-Type", "application/grpc"];
  const path = "/grpc.health.v1.Health/Check";
  return { method: "POST", path, headers, body: grpcFrame(message) };
}

/** Returns why the service is not healthy; undefined if it is. */
function healthFault({ status, headers, trailers, body }: ShortAnswer): string | undefined {
  if (status !== 200) return `health check: ${status}`;
  const code = String(trailers["grpc-status"] ?? headers["grpc-status"]);
  if (code !== "0") return `health check: grpc-status ${/^\d{1,3}$/.test(code) ? code : "missing"}`;
  const message = grpcMessage(body);
  const serving = message?.[0] === STATUS_FIELD && message[1] === SERVING;
  return serving ? undefined : "health check: not serving";
}

type CheckedTarget = Pick<Target, "origin" | "pool" | "speaksHttp2">;

const DEFAULT_STATUS = [[200, 399]] as const;

/** Maximum number of bytes to read of a response. */
const MAX_BYTES = 1024;

/** Jitter that spreads the checks of several targets and replicas, as a fraction of the interval. */
const JITTER = 0.1;

/** This process had no socket left for the check. */
const NOT_CHECKED = "health check: resource_exhausted";

/**
 * Checks one target, at once and then at every interval.
 *
 * @param decided called when enough checks in a row agree.
 * @returns a function that ends the checks.
 */
export function startChecks(
  options: HealthOptions,
  target: CheckedTarget,
  decided: (healthy: boolean, why: string) => void,
): () => void {
  const { interval, healthy, unhealthy } = options;
  let row = 0;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  const round = async (): Promise<void> => {
    const fault = await healthFaultOf(target, options);
    if (stopped) return;
    const passed = fault === undefined;
    // A check that could not be made says nothing about the target.
    if (fault !== NOT_CHECKED) row = passed ? Math.max(1, row + 1) : Math.min(-1, row - 1);
    if (row >= healthy) decided(true, "the health checks pass");
    if (row <= -unhealthy) decided(false, fault ?? "");
    const wait = interval * (1 + JITTER * (Math.random() - 0.5));
    timer = setTimeout(() => void round(), wait).unref();
  };
  void round();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

/** Resolves with why a target is unhealthy; undefined if it is healthy. Never rejects. */
export async function healthFaultOf(
  target: CheckedTarget,
  { kind, timeout, service = "", path = "/", status = DEFAULT_STATUS }: HealthOptions,
): Promise<string | undefined> {
  const limit = AbortSignal.timeout(timeout);
  try {
    if (kind === "grpc") {
      const query = healthQuery(target.origin, service);
      return healthFault(await sendQuery(target.pool, query, limit, MAX_BYTES));
    }
    const found = await statusOf(target, path, timeout, limit);
    const expected = status.some(([from, to]) => found >= from && found <= to);
    return expected ? undefined : `health check: ${found}`;
  } catch (error) {
    return `health check: ${limit.aborted ? "response_timeout" : failureReason(error)}`;
  }
}

/** Checks an HTTP/1.1 target over a separate connection, and an HTTP/2 target over the connections of its requests. */
async function statusOf(
  { origin, pool, speaksHttp2 }: CheckedTarget,
  path: string,
  connectMs: number,
  limit: AbortSignal,
): Promise<number> {
  const query = probeQuery(origin, path);
  if (speaksHttp2) return (await sendQuery(pool, query, limit, MAX_BYTES)).status;
  const own = openPool(origin, "http1", connectMs);
  return (await sendQueryOnce(own, query, limit, 0)).status;
}

import type { IncomingMessage, RequestOptions } from "node:http";
import { request as requestByHttps } from "node:https";
import { type AdminResponse, type AdminPage, PLAIN_TEXT } from "../../core/admin-page.ts";
import type { UpstreamErrorReason } from "../../core/request/outcome.ts";
import { request as requestByHttp } from "../../lib/http/node-http.ts";
import { SingleFlight } from "../../lib/async/single-flight.ts";
import { failureReason } from "../http/failures.ts";
import { sendQueryOnce, type BackendQuery } from "../http2/query.ts";
import { openPool, type UpstreamProtocol } from "./open-pool.ts";
import { type TargetOrigin, tlsOptionsOf } from "./target-origin.ts";
import { firstOriginOf } from "./target-list.ts";
import type { UpstreamOptions } from "./upstream-options.ts";

/** A path of the admin listener that a backend answers. */
export interface ProbeRoute {
  /** The path on the admin listener. */
  readonly path: string;
  /** Path and query at the backend. */
  readonly target: string;
}

/** The time limit for a complete response, in milliseconds. */
const TIMEOUT_MS = 10_000;
/** Maximum bytes of the backend's text to show: a kubelet stores 10 KiB, people read less. */
const MAX_BYTES = 4 * 1024;
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
  { path, target }: ProbeRoute,
  upstream: UpstreamOptions,
  limitMs = TIMEOUT_MS,
): AdminPage {
  const origin = firstOriginOf(upstream);
  const { protocol = "http1" } = upstream;
  const send = protocol === "http1" ? readHttp1 : readBy(protocol);
  const flights = new SingleFlight<AdminResponse>();
  const answer = (): Promise<AdminResponse> =>
    flights.run(path, () => respondInTime(origin, target, limitMs, send));
  return { path, method: "GET", audience: "everybody", answer };
}

/** Always resolves in time, whatever the backend does, since several clients may be waiting. */
function respondInTime(
  origin: TargetOrigin,
  path: string,
  limitMs: number,
  send: QueryFunction,
): Promise<AdminResponse> {
  const limit = AbortSignal.timeout(limitMs);
  const { promise, resolve } = Promise.withResolvers<AdminResponse>();
  // Runs before the request is aborted: a truncated response can look complete.
  limit.addEventListener("abort", () => resolve(failed(504, "response_timeout")), { once: true });
  void query(origin, path, limit, send).then(resolve);
  return promise;
}

/** Sends the request, and reads the beginning of the answer. */
type QueryFunction = (
  origin: TargetOrigin,
  path: string,
  limit: AbortSignal,
) => Promise<{ readonly status: number; readonly text: () => Promise<string> | string }>;

async function query(
  origin: TargetOrigin,
  path: string,
  limit: AbortSignal,
  send: QueryFunction,
): Promise<AdminResponse> {
  try {
    const { status, text } = await send(origin, path, limit);
    // Node's parser accepts any three digits; RFC 9110 §15 ends at 599.
    if (status < 200 || status > 599) return failed(502, "invalid_response");
    const shown = BODILESS.includes(status) ? 200 : status;
    return { status: shown, type: PLAIN_TEXT, body: await text() };
  } catch (error) {
    return failed(502, failureReason(error));
  }
}

async function readHttp1(...details: Parameters<QueryFunction>): ReturnType<QueryFunction> {
  const answer = await headOf(...details);
  const { statusCode: status = 0 } = answer;
  if (status < 200 || status > 599) answer.destroy();
  return { status, text: () => beginningOf(answer) };
}

function readBy(protocol: UpstreamProtocol): QueryFunction {
  return async (origin, path, limit) => {
    const pool = openPool(origin, { protocol, connectMs: TIMEOUT_MS });
    const probe = probeQuery(origin, path);
    const { status, body } = await sendQueryOnce(pool, probe, limit, MAX_BYTES);
    return { status, text: () => body.toString("utf8") };
  };
}

/** Creates the request for an HTTP/2 backend: the same one that `headOf` sends over HTTP/1.1. */
export function probeQuery({ authority }: TargetOrigin, path: string): BackendQuery {
  const headers = ["Host", authority, "User-Agent", "sallyport-probe", "Accept", "*/*"];
  return { method: "GET", path, headers };
}

function failed(status: number, reason: UpstreamErrorReason): AdminResponse {
  return { status, type: PLAIN_TEXT, body: `${reason}\n` };
}

/**
 * Sends the request and returns the head of the response.
 *
 * @throws the system's error, or an AbortError after the time limit, which also aborts reading the body.
 */
export function headOf(
  origin: TargetOrigin,
  path: string,
  limit: AbortSignal,
): Promise<IncomingMessage> {
  const { protocol, hostname, port, socketPath, authority, lookup } = origin;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const options: RequestOptions = {
    path,
    agent: false,
    signal: limit,
    headers: {
      Host: authority,
      "User-Agent": "sallyport-probe",
      Accept: "*/*",
      Connection: "close",
    },
    ...(socketPath === undefined ? { host: hostname, port } : { socketPath }),
    ...(lookup === undefined ? {} : { lookup }),
  };
  const sent =
    protocol === "http:"
      ? requestByHttp(options, resolve)
      : requestByHttps({ ...options, ...tlsOptionsOf(origin) }, resolve);
  sent.on("error", reject);
  // After an unexpected 101, Node closes the connection without an error.
  sent.on("close", () => reject(new Error("the backend gave no answer")));
  sent.end();
  return promise;
}

async function beginningOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop closes the connection.
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= MAX_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, MAX_BYTES).toString("utf8");
}

import type { IncomingMessage, RequestOptions } from "node:http";
import { request as requestByHttps } from "node:https";
import { type AdminAnswer, type AdminPage, PLAIN_TEXT } from "../core/admin-page.ts";
import type { UpstreamErrorReason } from "../core/outcome.ts";
import { request as requestByHttp } from "../lib/node-http.ts";
import { SingleFlight } from "../lib/single-flight.ts";
import { failureReason } from "./failures.ts";
import { originOf, type TargetOrigin } from "./target.ts";
import type { UpstreamOptions } from "./upstreams.ts";

/** One probe of the admin listener that a backend answers. */
export interface ProbePassage {
  /** The path on the admin listener. */
  readonly path: string;
  /** Path and query at the backend. */
  readonly target: string;
}

/** How long a backend may take for the whole answer, in milliseconds. */
const LIMIT_MS = 10_000;
/** So much of the backend's text is shown: a kubelet keeps 10 KiB, people read less. Bytes. */
const MAX_BYTES = 4 * 1024;
/** Statuses whose answers have no body, not even a length (RFC 9110 §8.6): told as a plain success. */
const BODILESS = [204, 205, 304];

/**
 * A page that asks a backend which only this machine reaches. One fixed request: nothing of what the client sent goes on, and
 * of the answer come back the status and the beginning of the text. Those who ask at the same time share one request.
 *
 * @param upstream of several targets the first is asked.
 * @param limitMs how long a backend may take for the whole answer.
 */
export function probePage(
  { path, target }: ProbePassage,
  upstream: UpstreamOptions,
  limitMs = LIMIT_MS,
): AdminPage {
  const origin = originOf(upstream.targets[0] ?? "", upstream.tls);
  const flights = new SingleFlight<AdminAnswer>();
  const answer = (): Promise<AdminAnswer> =>
    flights.run(path, () => answerInTime(origin, target, limitMs));
  return { path, method: "GET", audience: "everybody", answer };
}

/** Comes to its end whatever the backend does: others wait for the same answer. */
function answerInTime(origin: TargetOrigin, path: string, limitMs: number): Promise<AdminAnswer> {
  const limit = AbortSignal.timeout(limitMs);
  const { promise, resolve } = Promise.withResolvers<AdminAnswer>();
  // Before the request hears of it: an answer that is cut off can look like one that has ended.
  limit.addEventListener("abort", () => resolve(failed(504, "response_timeout")), { once: true });
  void ask(origin, path, limit).then(resolve);
  return promise;
}

async function ask(origin: TargetOrigin, path: string, limit: AbortSignal): Promise<AdminAnswer> {
  try {
    const answer = await headOf(origin, path, limit);
    const { statusCode = 0 } = answer;
    // Node's parser takes any three digits; RFC 9110 §15 ends at 599.
    if (statusCode < 200 || statusCode > 599) {
      answer.destroy();
      return failed(502, "invalid_response");
    }
    const status = BODILESS.includes(statusCode) ? 200 : statusCode;
    return { status, type: PLAIN_TEXT, body: await beginningOf(answer) };
  } catch (error) {
    return failed(502, failureReason(error));
  }
}

function failed(status: number, reason: UpstreamErrorReason): AdminAnswer {
  return { status, type: PLAIN_TEXT, body: `${reason}\n` };
}

/** @throws the system's error, or an AbortError when the time is up; so does reading the answer then. */
function headOf(origin: TargetOrigin, path: string, limit: AbortSignal): Promise<IncomingMessage> {
  const { protocol, hostname, port, socketPath, serverName, tls } = origin;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const options: RequestOptions = {
    path,
    agent: false,
    signal: limit,
    headers: { "User-Agent": "sallyport-probe", Accept: "*/*", Connection: "close" },
    ...(socketPath === undefined ? { host: hostname, port } : { socketPath }),
  };
  const sent =
    protocol === "http:"
      ? requestByHttp(options, resolve)
      : requestByHttps(
          { ...options, ca: tls?.ca, cert: tls?.cert, key: tls?.key, servername: serverName },
          resolve,
        );
  sent.on("error", reject);
  // A 101 that nobody asked for: Node closes the connection without an error.
  sent.on("close", () => reject(new Error("the backend gave no answer")));
  sent.end();
  return promise;
}

async function beginningOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop ends the connection.
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes >= MAX_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, MAX_BYTES).toString("utf8");
}

import { request as requestByHttp, type IncomingMessage, type RequestOptions } from "node:http";
import { request as requestByHttps } from "node:https";
import { type AdminAnswer, type AdminPage, PLAIN_TEXT } from "../core/admin-page.ts";
import { SingleFlight } from "../lib/single-flight.ts";
import { failureReason } from "./failures.ts";
import { createTarget, type TargetOrigin } from "./target.ts";
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
 */
export function probePage({ path, target }: ProbePassage, upstream: UpstreamOptions): AdminPage {
  const address = upstream.targets[0] ?? "";
  const { origin } = createTarget({ ...upstream, address });
  const flights = new SingleFlight<AdminAnswer>();
  const answer = (): Promise<AdminAnswer> => flights.run(path, () => ask(origin, target));
  return { path, method: "GET", audience: "everybody", answer };
}

async function ask(origin: TargetOrigin, path: string): Promise<AdminAnswer> {
  try {
    const answer = await headOf(origin, path);
    const { statusCode = 502 } = answer;
    const status = BODILESS.includes(statusCode) ? 200 : statusCode;
    return { status, type: PLAIN_TEXT, body: await beginningOf(answer) };
  } catch (error) {
    const late = error instanceof Error && error.name === "AbortError";
    const reason = late ? "response_timeout" : failureReason(error);
    return { status: late ? 504 : 502, type: PLAIN_TEXT, body: `${reason}\n` };
  }
}

/** @throws the system's error, or an AbortError when the time is up; so does reading the answer then. */
function headOf(origin: TargetOrigin, path: string): Promise<IncomingMessage> {
  const { protocol, hostname, port, socketPath, serverName, tls } = origin;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const options: RequestOptions = {
    path,
    agent: false,
    signal: AbortSignal.timeout(LIMIT_MS),
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
  sent.on("error", reject).end();
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

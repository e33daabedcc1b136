import { json } from "node:stream/consumers";
import type { Status } from "../../core/status.ts";
import { request } from "../../lib/http/node-http.ts";
import { isJsonObject } from "../../lib/text/strict-json.ts";

const TIMEOUT_MS = 5_000;

/**
 * Fetches the status of a running proxy.
 * @throws Error if there is no response, a refusal, or a response that is not a status; the message says which.
 */
export async function fetchStatus(url: URL): Promise<Status> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const { promise, resolve, reject } = Promise.withResolvers<Status>();
  const sent = request(url, { agent: false, signal }, (response) => {
    const { statusCode = 0 } = response;
    json(response).then(
      (body) => {
        if (statusCode === 200 && isStatus(body)) resolve(body);
        else reject(new Error(`${url.href} says ${statusCode}${messageIn(body)}`));
      },
      () => reject(new Error(`${url.href} says ${statusCode}, but its body is not a status`)),
    );
  });
  sent.on("error", (error) => {
    const late = `${url.href} did not answer within ${TIMEOUT_MS / 1000} s`;
    reject(signal.aborted ? new Error(late) : error);
  });
  sent.end();
  return promise;
}

function isStatus(body: unknown): body is Status {
  return (
    isJsonObject(body) &&
    ["routes", "upstreams", "keys", "minutes", "refusals"].every((name) =>
      Array.isArray(body[name]),
    )
  );
}

function messageIn(body: unknown): string {
  const known = typeof body === "object" && body !== null && "message" in body;
  return known && typeof body.message === "string" ? `: ${body.message}` : "";
}

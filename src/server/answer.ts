import type { IncomingMessage } from "node:http";
import type { Answer } from "../core/answer.ts";
import { type ErrorCode, errorRow, type GateError } from "../core/errors.ts";
import { finishReading } from "./discard-rest.ts";
import type { TrackedResponse } from "./tracked-response.ts";

/** The name under which this proxy speaks of itself (`Proxy-Status`, RFC 9209). */
const PRODUCT = "sallyport";

/** What every answer of our own says. */
export interface Envelope {
  readonly id: number;
  readonly message: string;
  readonly success: boolean;
  readonly [field: string]: unknown;
}

/** Writes an envelope as an answer with the headers that all of them have. */
export function envelopeAnswer(
  status: number,
  envelope: Envelope,
  requestId: string,
  extra: readonly string[] = [],
  close = false,
): Answer {
  const body = JSON.stringify(envelope);
  return {
    status,
    body,
    close,
    headers: [
      ...["Content-Type", "application/json", "Content-Length", String(Buffer.byteLength(body))],
      ...["Cache-Control", "no-store", "X-Content-Type-Options", "nosniff"],
      ...["X-Request-Id", requestId, ...extra],
      ...(close ? ["Connection", "close"] : []),
    ],
  };
}

/** The one place that turns an error into an answer, by the table. */
export function errorAnswer(
  error: GateError,
  id: number,
  requestId: string,
  realm: string,
): Answer {
  const row = errorRow(error.code);
  const extra: string[] = [];
  if (row.challenge) extra.push("WWW-Authenticate", challenge(error.code, realm));
  if (row.proxyStatus !== undefined) {
    extra.push("Proxy-Status", `${PRODUCT}; error=${row.proxyStatus}`);
  }
  const retryAfter = error.retryAfter ?? (row.status === 503 ? 1 : undefined);
  if (retryAfter !== undefined) extra.push("Retry-After", String(Math.ceil(retryAfter)));
  if (error.allow !== undefined) extra.push("Allow", error.allow);
  const envelope = { id, message: error.message, success: false };
  return envelopeAnswer(row.status, envelope, requestId, extra, row.close === true);
}

/** RFC 6750 §3: no `error` when no token was sent. */
function challenge(code: ErrorCode, realm: string): string {
  const { bearerError } = errorRow(code);
  const parameter = bearerError === undefined ? "" : `, error="${bearerError}"`;
  return `Bearer realm="${realm}"${parameter}`;
}

/**
 * Sends an answer, unless one has begun already. What the client still sends of its body is read away for a while.
 *
 * @returns how many bytes of body go out.
 */
export function send(answer: Answer, request: IncomingMessage, response: TrackedResponse): number {
  if (response.headersSent || response.destroyed) return 0;
  response.whole = true;
  if (answer.close) response.shouldKeepAlive = false;
  response.writeHead(answer.status, [...answer.headers]);
  const body = request.method === "HEAD" ? "" : answer.body;
  response.end(body);
  finishReading(request);
  return Buffer.byteLength(body);
}

import type { IncomingMessage } from "node:http";
import type { GateRequest } from "../core/gate-request.ts";
import type { AuthResult, Outcome } from "../core/outcome.ts";
import { Transfer } from "../core/transfer.ts";
import { plainAddress } from "../lib/networks.ts";
import type { TrackedResponse } from "./tracked-response.ts";

/** The client left before it had its answer; nginx's number, in log and metrics only. */
export const CLIENT_GONE = 499;

/** What is known of a request when it ends, in the order in which it becomes known. */
export interface Progress {
  readonly id: number;
  readonly started: number;
  readonly transfer: Transfer;
  /** Empty until intake has read the request, or an error was answered. */
  requestId: string;
  request: GateRequest | undefined;
  route: string;
  auth: AuthResult | undefined;
  subject: string | undefined;
  reason: string | undefined;
  /** What the client got, when `response` does not say it: 101, or 499. */
  status: number;
}

/** @param started monotonic, in milliseconds. */
export function beginProgress(id: number, started: number): Progress {
  return {
    id,
    started,
    transfer: new Transfer(),
    requestId: "",
    request: undefined,
    route: "none",
    auth: undefined,
    subject: undefined,
    reason: undefined,
    status: 0,
  };
}

/** All that is told of a request that has ended. */
export function outcomeOf(
  progress: Progress,
  incoming: IncomingMessage,
  response: TrackedResponse,
  isUpgrade: boolean,
  durationMs: number,
): Outcome {
  const { request, transfer } = progress;
  const { interruption } = response;
  const left = transfer.brokeOff === "aborted" && interruption === undefined;
  return {
    id: progress.id,
    requestId: progress.requestId,
    client: request?.client ?? plainAddress(incoming.socket.remoteAddress ?? ""),
    method: incoming.method ?? "",
    host: request?.authority ?? "",
    path: request?.path ?? pathAlone(incoming.url ?? ""),
    route: progress.route,
    upstream: transfer.upstream,
    target: transfer.target,
    status: progress.status || (left ? CLIENT_GONE : response.statusCode),
    source: transfer.answeredAfterMs === undefined ? "self" : "upstream",
    auth: progress.auth,
    reason: interruption ?? transfer.brokeOff ?? progress.reason,
    subject: progress.subject,
    bytesIn: transfer.bytesIn,
    bytesOut: transfer.bytesOut,
    durationMs,
    upstreamMs: transfer.answeredAfterMs,
    protocol: isUpgrade ? "websocket" : `HTTP/${incoming.httpVersion}`,
  };
}

/** Of a target that was refused only what cannot hold a secret: no query, and no authority with a password in it. */
function pathAlone(url: string): string {
  return url.startsWith("/") ? url.replace(/[?#].*$/s, "") : "";
}

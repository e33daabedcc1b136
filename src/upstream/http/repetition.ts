import { errorRow, type GateError } from "../../core/request/errors.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { RetryCause } from "../../core/route/route.ts";
import { BackendFault, NOT_CONNECTED, upstreamReason } from "./failures.ts";
import type { Target } from "../pool/target.ts";
import type { PermittedRequest } from "./dispatch.ts";

/** Where a request is sent again: to any target, or to another one. */
export type Where = "same" | "other";

/** The default for a route without `retry`. */
export const DEFAULT_RETRY = { attempts: 1, on: ["connect", "stale"] as readonly RetryCause[] };

/** Idempotent methods (RFC 9110 §9.2.2). */
const IDEMPOTENT = new Set([
  "GET",
  "HEAD",
  "OPTIONS",
  "PUT",
  "DELETE",
  "PROPFIND",
  "REPORT",
  "SEARCH",
]);

/** Whether a request may be sent twice. */
export function isIdempotent({ method }: GateRequest): boolean {
  return IDEMPOTENT.has(method);
}

/** An attempt to send a request. */
export interface Attempt extends Pick<PermittedRequest, "permit" | "upstream"> {
  readonly target: Target | undefined;
  /** The number of earlier retries. */
  readonly retries: number;
  /** Whether the complete body can be sent again. */
  readonly isReplayable: boolean;
}

/** Whether the request is sent again because of the status of its response, which is then discarded. */
export function isUnwanted(attempt: Attempt, status: number): boolean {
  const { permit, upstream } = attempt;
  const { retry } = permit.route;
  if (retry === undefined || status < 502 || status > 504) return false;
  if (attempt.retries >= retry.attempts || !attempt.isReplayable) return false;
  const wanted = retry.on.some((cause) => cause === String(status));
  return wanted && isIdempotent(permit.request) && upstream.takeRetry();
}

/**
 * Decides about a request that failed before anything reached the client, and reports the failure to its target. One that
 * may have been executed is sent again only if it is idempotent. One that an HTTP/2 backend reports as unprocessed was not
 * executed.
 *
 * @param stale whether the connection may have been closed before the request arrived.
 * @param sentAt monotonic milliseconds.
 * @returns where to send the request again; undefined if it has failed.
 */
export function whereToRetry(
  { permit, upstream, target, retries, isReplayable }: Attempt,
  failure: GateError,
  stale: boolean,
  sentAt: number,
): Where | undefined {
  const fault = failure.cause instanceof BackendFault ? failure.cause.kind : undefined;
  if (fault === "repeated") return "other";
  const reason = upstreamReason(failure);
  // A connection that was closed while idle, or gracefully, says nothing about the target.
  const isEnd = (stale && reason === "reset") || fault === "unprocessed";
  if (target !== undefined && reason !== undefined && !isEnd) {
    upstream.states?.failed(target, reason, sentAt);
  }
  const { attempts, on } = permit.route.retry ?? DEFAULT_RETRY;
  if (reason === undefined || reason === "aborted") return undefined;
  // The request could not have reached any target.
  if (reason === "resource_exhausted") return undefined;
  if (retries >= attempts || !isReplayable) return undefined;
  const idempotent = isIdempotent(permit.request);
  // This costs the backend nothing, so it needs no budget. A target that closes its connections may be shutting down.
  if (on.includes("stale")) {
    const where = upstream.isAlone ? "same" : "other";
    if (fault === "refused") return "other";
    if (fault === "unprocessed") return where;
    if (stale && reason === "reset" && idempotent) return where;
  }
  const again =
    (!upstream.isAlone && on.includes("connect") && NOT_CONNECTED.has(reason)) ||
    (!upstream.isAlone && on.includes("stale") && reason === "reset" && idempotent) ||
    (idempotent && on.some((cause) => cause === String(errorRow(failure.code).status)));
  return again && upstream.takeRetry(target) ? "other" : undefined;
}

import { errorRow, type GateError } from "../../core/request/errors.ts";
import type { UpstreamErrorReason } from "../../core/request/outcome.ts";
import type { RetryCause } from "../../core/route/route.ts";
import type { Slot } from "../pool/slot.ts";
import type { ClientBody } from "./client-body.ts";
import { isIdempotent } from "./dispatch.ts";
import { upstreamReason } from "./failures.ts";
import { Unprocessed } from "../http2/http2-faults.ts";
import type { ForwardingSettings, PermittedRequest } from "./permitted-request.ts";

/** Where a request is sent again: to any target, or to another one. */
export type Where = "same" | "other";

/** The default for a route without `retry`. */
export const DEFAULT_RETRY = { attempts: 1, on: ["connect", "stale"] as readonly RetryCause[] };
/** Failures before anything of the request was sent. */
const UNSENT: ReadonlySet<UpstreamErrorReason> = new Set([
  ...(["connect_refused", "connect_timeout", "dns", "tls"] satisfies UpstreamErrorReason[]),
]);

/**
 * The attempts to send one request. Reports the outcome of each to the upstream, and decides whether another follows. A
 * request that may have been executed is repeated only if it is idempotent. One that an HTTP/2 backend reports as
 * unprocessed was not executed.
 */
export class Attempts {
  readonly #settings: Pick<ForwardingSettings, "observer">;
  readonly #permitted: PermittedRequest;
  readonly #slot: Slot;
  readonly #body: Pick<ClientBody, "isReplayable" | "settle">;
  /** The number of retries. */
  retries = 0;

  constructor(
    settings: Pick<ForwardingSettings, "observer">,
    permitted: PermittedRequest,
    slot: Slot,
    body: Pick<ClientBody, "isReplayable" | "settle">,
  ) {
    this.#settings = settings;
    this.#permitted = permitted;
    this.#slot = slot;
    this.#body = body;
  }

  /** Another attempt begins. */
  begin(): void {
    this.retries += 1;
    this.#settings.observer.upstreamRetried(this.#permitted.upstream.name);
  }

  /** The head of a response has arrived. @throws Repeated if it is discarded for a retry. */
  answered(status: number): void {
    const { upstream } = this.#permitted;
    const { target } = this.#slot;
    if (target !== undefined) upstream.states?.answered(target, status);
    if (this.#isUnwanted(status)) throw new Repeated();
    this.#body.settle();
  }

  #isUnwanted(status: number): boolean {
    const { permit, upstream } = this.#permitted;
    const { retry } = permit.route;
    if (retry === undefined || status < 502 || status > 504) return false;
    if (this.retries >= retry.attempts || !this.#body.isReplayable) return false;
    const wanted = retry.on.some((cause) => cause === String(status));
    return wanted && isIdempotent(permit.request) && upstream.takeRetry();
  }

  /**
   * An attempt failed before anything reached the client.
   *
   * @param stale whether the connection may have been closed before the request arrived.
   * @param sentAt monotonic milliseconds.
   * @returns where to send the request again; undefined if it has failed.
   */
  failed(failure: GateError, stale: boolean, sentAt: number): Where | undefined {
    const { permit, upstream } = this.#permitted;
    const { target } = this.#slot;
    const reason = upstreamReason(failure);
    const unprocessed = failure.cause instanceof Unprocessed ? failure.cause : undefined;
    // A connection that was closed while idle, or gracefully, says nothing about the target.
    const isEnd = (stale && reason === "reset") || unprocessed?.refused === false;
    if (target !== undefined && reason !== undefined && !isEnd) {
      upstream.states?.failed(target, reason, sentAt);
    }
    const { attempts, on } = permit.route.retry ?? DEFAULT_RETRY;
    if (reason === undefined || reason === "aborted") return undefined;
    // The request could not have reached any target.
    if (reason === "resource_exhausted") return undefined;
    if (this.retries >= attempts || !this.#body.isReplayable) return undefined;
    const idempotent = isIdempotent(permit.request);
    // This costs the backend nothing, so it needs no budget. A target that closes its connections may be shutting down.
    if (on.includes("stale")) {
      const where = upstream.isAlone ? "same" : "other";
      if (unprocessed !== undefined) return unprocessed.refused ? "other" : where;
      if (stale && reason === "reset" && idempotent) return where;
    }
    const again =
      (!upstream.isAlone && on.includes("connect") && UNSENT.has(reason)) ||
      (!upstream.isAlone && on.includes("stale") && reason === "reset" && idempotent) ||
      (idempotent && on.some((cause) => cause === String(errorRow(failure.code).status)));
    return again && upstream.takeRetry(target) ? "other" : undefined;
  }
}

/** Ends an attempt whose response is discarded. */
export class Repeated extends Error {
  constructor() {
    super("the request is sent again");
    this.name = "Repeated";
  }
}

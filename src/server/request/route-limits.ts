import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Identity } from "../../core/request/identity.ts";
import type { ConcurrencyLimit, ConcurrencyVerdict } from "../../core/route/concurrency.ts";

/** Counts a request among those in flight until its `release`. */
export function takeInFlight(
  limit: ConcurrencyLimit,
  { network }: GateRequest,
  identity: Identity | undefined,
): ConcurrencyVerdict {
  if (limit.by === "route") return new InFlight(limit, "");
  const isAnonymous = limit.by === "client" || identity === undefined;
  return new InFlight(limit, isAnonymous ? network : callerKey(identity));
}

/** A request that is counted until it is released, unless the limit refuses it. */
class InFlight implements ConcurrencyVerdict {
  readonly allowed: boolean;
  readonly #limit: ConcurrencyLimit;
  readonly #key: string;
  #counted: boolean;

  constructor(limit: ConcurrencyLimit, key: string) {
    this.#limit = limit;
    this.#key = key;
    this.allowed = limit.take(key);
    this.#counted = this.allowed;
  }

  release(): void {
    if (this.#counted) this.#limit.release(this.#key);
    this.#counted = false;
  }
}

/** The key of a caller in the limits of a route. */
export function callerKey({ issuer, subject }: Identity): string {
  // Issuer names contain no NUL, so the first one separates.
  return `${issuer}\0${subject}`;
}

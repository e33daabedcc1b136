import { setImmediate as nextTurn } from "node:timers/promises";
import type { StreamEnd } from "../../core/request/outcome.ts";
import type { Identity } from "../../core/request/identity.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { RevocationList } from "../../tokens/revocation/revocation-list.ts";
import type { Clock } from "../../lib/clock.ts";
import { callEach } from "../../lib/async/isolation.ts";
import { TimingWheel } from "../../lib/async/timing-wheel.ts";
import { refuseUnderWay } from "./cut-request.ts";
import type { RulesInForce } from "./gate.ts";
import type { RequestContext } from "./request-context.ts";

export interface StreamEndsOptions {
  readonly rules: Pick<RulesInForce, "current">;
  readonly revocations: RevocationList;
  readonly clock: Clock;
  /** Called for each stream that was ended. */
  readonly ended: (reason: StreamEnd) => void;
}

/** The interval at which the wheel is checked, with one timer for all streams. */
const CHECK_EVERY_MS = 250;
/** The minimum time between two checks of all streams after revocations: checking 10,000 takes 3 ms. */
const CHECK_ALL_EVERY_MS = 100;
/** Maximum number of streams that end in one turn of the event loop. */
const PER_TURN = 100;

/**
 * Ends requests and WebSockets when their token ends: at `exp`, and when it is revoked. A WebSocket gets close code 1008, a request without
 * an answer 401, and an answer that has begun is cut.
 */
export class StreamEnds {
  readonly #options: StreamEndsOptions;
  /** Ordered by the end of the token, so that streams with valid tokens need no check. */
  readonly #wheel: TimingWheel<RequestContext>;
  /** Undefined while there is nothing to check, so that an idle process sleeps. */
  #timer: NodeJS.Timeout | undefined;
  readonly #stopListening: () => void;
  #soon: NodeJS.Timeout | undefined;
  /** Monotonic, in milliseconds. */
  #checkedAllAt = -Infinity;

  constructor(options: StreamEndsOptions) {
    const { clock, rules, revocations } = options;
    this.#options = options;
    this.#wheel = new TimingWheel(clock.now() - rules.current.streams.grace);
    this.#stopListening = revocations.onChange(() => this.#checkAllSoon());
  }

  close(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#soon);
    this.#stopListening();
  }

  /** Follows a request that was permitted, if it has a caller whose token can end. */
  started(context: RequestContext, { identity }: Permit): void {
    if (identity === undefined) return;
    this.#wheel.add(context, identity.acceptedUntil);
    this.#timer ??= setInterval(() => this.#check(), CHECK_EVERY_MS).unref();
  }

  finished(context: RequestContext): void {
    this.#wheel.remove(context);
  }

  /** Whether the token of a caller has expired or was revoked since it was verified. */
  hasEnded(identity: Identity | undefined): boolean {
    if (identity === undefined) return false;
    const { clock, revocations } = this.#options;
    return clock.now() >= identity.acceptedUntil || revocations.covering(identity) !== undefined;
  }

  /** After a reload: a permit that was renewed may end at another time. */
  settle(): void {
    for (const context of [...this.#wheel.all()]) {
      const permit = permitOf(context);
      if (permit !== undefined) this.started(context, permit);
    }
  }

  #check(): void {
    const { clock, rules } = this.#options;
    if (this.#wheel.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const { endWithToken, grace } = rules.current.streams;
    // A stream whose token ends while the setting is off ends when it is turned on again.
    if (!endWithToken) return;
    const endedBy = clock.now() - grace;
    this.#end(
      "token_expired",
      this.#wheel.due(endedBy),
      (caller) => caller.acceptedUntil <= endedBy,
    );
  }

  /** Checks all streams once for all revocations of this turn; later if they were checked just now. */
  #checkAllSoon(): void {
    if (this.#soon !== undefined) return;
    const next = this.#checkedAllAt + CHECK_ALL_EVERY_MS;
    const wait = Math.max(0, next - this.#options.clock.monotonic());
    this.#soon = setTimeout(() => this.#checkAll(), wait).unref();
  }

  #checkAll(): void {
    this.#soon = undefined;
    const { clock, rules, revocations } = this.#options;
    this.#checkedAllAt = clock.monotonic();
    if (!rules.current.streams.endWithToken) return;
    const isRevoked = (caller: Identity): boolean => revocations.covering(caller) !== undefined;
    this.#end("revoked", this.#wheel.all(), isRevoked);
  }

  /** Ends the streams whose token has ended. On a route in monitor mode none does until a reload enforces it: see `settle`. */
  #end(
    reason: StreamEnd,
    contexts: Iterable<RequestContext>,
    hasEnded: (caller: Identity) => boolean,
  ): void {
    const endings: (() => void)[] = [];
    const isDue = (context: RequestContext): boolean => {
      const permit = permitOf(context);
      if (permit?.identity === undefined || permit.route.mode === "monitor") return false;
      return hasEnded(permit.identity);
    };
    for (const context of contexts) {
      if (!isDue(context)) continue;
      endings.push(() => {
        // A reload may have renewed the permit in the meantime.
        if (!isDue(context)) return;
        this.#wheel.remove(context);
        if (this.#endOne(context, reason)) this.#options.ended(reason);
      });
    }
    if (endings.length > 0) void inTurns(endings);
  }

  #endOne({ transfer, response }: RequestContext, reason: StreamEnd): boolean {
    if (transfer.webSocket !== undefined) return transfer.webSocket.end(reason);
    const isCertificate = response.permit?.route.auth === "certificate";
    const error = isCertificate ? "invalid_certificate" : "invalid_token";
    return refuseUnderWay(response, error, this.#options.rules.current.realm, reason);
  }
}

/** The permit under which a request runs: that of a WebSocket is renewed by a reload. */
function permitOf({ transfer, response }: RequestContext): Permit | undefined {
  return transfer.webSocket?.permit ?? response.permit;
}

async function inTurns(endings: readonly (() => void)[]): Promise<void> {
  for (let from = 0; from < endings.length; from += PER_TURN) {
    if (from > 0) await nextTurn();
    callEach(endings.slice(from, from + PER_TURN), (end) => end());
  }
}

import { setImmediate as nextTurn } from "node:timers/promises";
import type { StreamEnd } from "../../core/request/outcome.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { Revocations } from "../../core/revocation.ts";
import type { Clock } from "../../lib/clock.ts";
import { TimingWheel } from "../../lib/async/timing-wheel.ts";
import { refuseUnderWay } from "./cut-request.ts";
import type { RequestContext } from "./request-context.ts";

export interface StreamEndsOptions {
  readonly settings: () => {
    readonly endWithToken: boolean;
    /** How long a stream may continue after its token has expired, in milliseconds; never after a revocation. */
    readonly grace: number;
  };
  readonly revocations: Revocations;
  readonly realm: () => string;
  readonly clock: Clock;
  /** Called for each stream that was ended. */
  readonly ended: (reason: StreamEnd) => void;
}

/** The interval at which the wheel is checked: one timer for all streams. */
const LOOK_EVERY_MS = 250;
/** Minimum time between two checks of all streams after revocations: checking 10,000 takes 3 ms. */
const JUDGE_EVERY_MS = 100;
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
  #judgedAt = -Infinity;

  constructor(options: StreamEndsOptions) {
    const { clock, settings, revocations } = options;
    this.#options = options;
    this.#wheel = new TimingWheel(clock.now() - settings().grace);
    this.#stopListening = revocations.onChange(() => this.#judgeSoon());
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
    this.#timer ??= setInterval(() => this.#look(), LOOK_EVERY_MS).unref();
  }

  finished(context: RequestContext): void {
    this.#wheel.remove(context);
  }

  /** After a reload: a permit that was renewed may end at another time. */
  settle(): void {
    for (const context of [...this.#wheel.all()]) {
      const permit = permitOf(context);
      if (permit !== undefined) this.started(context, permit);
    }
  }

  #look(): void {
    const { clock, settings } = this.#options;
    if (this.#wheel.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const { endWithToken, grace } = settings();
    // What has ended meanwhile is passed when it is turned on again.
    if (!endWithToken) return;
    const endedBy = clock.now() - grace;
    this.#end(this.#wheel.due(endedBy), (permit) =>
      permit.identity !== undefined && permit.identity.acceptedUntil <= endedBy
        ? "token_expired"
        : undefined,
    );
  }

  /** At the end of the turn, once for all that was revoked in it; and later, if it was done just now. */
  #judgeSoon(): void {
    if (this.#soon !== undefined) return;
    const next = this.#judgedAt + JUDGE_EVERY_MS;
    const wait = Math.max(0, next - this.#options.clock.monotonic());
    this.#soon = setTimeout(() => {
      this.#soon = undefined;
      this.#judge();
    }, wait).unref();
  }

  #judge(): void {
    const { clock, settings, revocations } = this.#options;
    this.#judgedAt = clock.monotonic();
    if (!settings().endWithToken) return;
    this.#end(this.#wheel.all(), ({ identity }) =>
      identity !== undefined && revocations.covering(identity) !== undefined
        ? "revoked"
        : undefined,
    );
  }

  /** Ends those for which there is a reason. A route in monitor mode ends none, until a reload enforces it: see `settle`. */
  #end(contexts: Iterable<RequestContext>, reasonOf: (permit: Permit) => StreamEnd | undefined) {
    const endings: (() => void)[] = [];
    for (const context of contexts) {
      const permit = permitOf(context);
      if (permit === undefined || permit.route.mode === "monitor") continue;
      const reason = reasonOf(permit);
      if (reason === undefined) continue;
      this.#wheel.remove(context);
      endings.push(() => {
        if (this.#endOne(context, permit, reason)) this.#options.ended(reason);
      });
    }
    if (endings.length > 0) void inTurns(endings);
  }

  #endOne({ transfer, response }: RequestContext, permit: Permit, reason: StreamEnd): boolean {
    if (transfer.webSocket !== undefined) return transfer.webSocket.end(reason);
    if (response.permit !== permit) return false;
    return refuseUnderWay(response, "invalid_token", this.#options.realm(), reason);
  }
}

/** The permit under which a request runs: that of a WebSocket is renewed by a reload. */
function permitOf({ transfer, response }: RequestContext): Permit | undefined {
  return transfer.webSocket?.permit ?? response.permit;
}

async function inTurns(endings: readonly (() => void)[]): Promise<void> {
  for (const [index, end] of endings.entries()) {
    if (index > 0 && index % PER_TURN === 0) await nextTurn();
    end();
  }
}

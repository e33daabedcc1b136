import { setImmediate as nextTurn } from "node:timers/promises";
import type { OpenStream } from "../../core/request/forwarder.ts";
import type { StreamEnd } from "../../core/request/outcome.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { Revocations } from "../../core/revocation.ts";
import type { Clock } from "../../lib/clock.ts";
import { currentResponse } from "../listener/client-error.ts";
import { refuseUnderWay, type RequestUnderWay } from "./cut-request.ts";

export interface StreamEndsOptions {
  /** What was let through and has not been answered whole. */
  readonly requests: () => Iterable<RequestUnderWay>;
  readonly webSockets: () => Iterable<OpenStream>;
  readonly settings: () => {
    readonly endWithToken: boolean;
    /** How long a stream may go on behind the end of its token, in milliseconds; not when that is revoked. */
    readonly grace: number;
  };
  readonly revocations: Revocations;
  readonly realm: () => string;
  readonly clock: Clock;
  /** Told of each stream that was ended. */
  readonly ended: (reason: StreamEnd) => void;
}

/** One timer looks at everything that runs, in place of one for each: a request then costs nothing for it. */
const LOOK_EVERY_MS = 250;
/** Maximum number of streams that end in one turn of the event loop. */
const PER_TURN = 100;

/**
 * Ends what runs when its token does: at `exp`, and when it is revoked. A WebSocket gets close code 1008, a request without
 * an answer 401, and an answer that has begun is cut.
 */
export class StreamEnds {
  readonly #options: StreamEndsOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #stopListening: () => void;
  #soon: NodeJS.Immediate | undefined;
  /** What is revoked was held against the streams in this version. */
  #judged: number;

  constructor(options: StreamEndsOptions) {
    const { revocations } = options;
    this.#options = options;
    this.#judged = revocations.version;
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS).unref();
    // At the end of the turn, once for all that was revoked in it.
    this.#stopListening = revocations.onChange(() => {
      this.#soon ??= setImmediate(() => {
        this.#soon = undefined;
        this.#look();
      });
    });
  }

  close(): void {
    clearInterval(this.#timer);
    clearImmediate(this.#soon);
    this.#stopListening();
  }

  #look(): void {
    const { requests, webSockets, revocations, clock, settings } = this.#options;
    const { endWithToken, grace } = settings();
    if (!endWithToken) return;
    const endedBy = clock.now() - grace;
    const judge = revocations.version !== this.#judged;
    this.#judged = revocations.version;
    const endings: (() => void)[] = [];
    for (const request of requests()) {
      const reason = this.#endOf(request.permit, endedBy, judge);
      if (reason !== undefined) endings.push(() => this.#endRequest(request, reason));
    }
    for (const stream of webSockets()) {
      const reason = this.#endOf(stream.permit, endedBy, judge);
      if (reason !== undefined) endings.push(() => this.#endWebSocket(stream, reason));
    }
    if (endings.length > 0) void inTurns(endings);
  }

  /** Why a stream ends now; undefined when it goes on, as all do where nobody is refused. */
  #endOf(
    { identity, route }: Permit,
    endedBy: number,
    judge: boolean,
  ): Exclude<StreamEnd, "no_longer_allowed"> | undefined {
    if (identity === undefined || route.mode === "monitor") return undefined;
    if (identity.acceptedUntil <= endedBy) return "token_expired";
    return judge && this.#options.revocations.covering(identity) !== undefined
      ? "revoked"
      : undefined;
  }

  #endRequest({ permit, socket }: RequestUnderWay, reason: StreamEnd): void {
    const { realm, ended } = this.#options;
    // Whatever came after it on this connection was decided about on its own.
    if (currentResponse(socket)?.permit !== permit) return;
    if (refuseUnderWay(socket, "invalid_token", realm(), reason)) ended(reason);
  }

  #endWebSocket(stream: OpenStream, reason: StreamEnd): void {
    if (stream.end(reason)) this.#options.ended(reason);
  }
}

async function inTurns(endings: readonly (() => void)[]): Promise<void> {
  for (const [index, end] of endings.entries()) {
    if (index > 0 && index % PER_TURN === 0) await nextTurn();
    end();
  }
}

import type { Clock } from "../../lib/clock.ts";
import { TimeoutEntry, TimeoutList } from "../../lib/async/timeout-list.ts";
import type { Connection, RequestControl } from "./connection.ts";
import { BackendTimeout } from "./failures.ts";

/** The timeouts for the answers of an upstream. */
export class AnswerLimits {
  readonly response: TimeoutList;
  readonly idle: TimeoutList;

  /** @param timeouts milliseconds. */
  constructor(timeouts: { readonly response: number; readonly idle: number }, clock: Clock) {
    this.response = new TimeoutList(timeouts.response, clock);
    this.idle = new TimeoutList(timeouts.idle, clock);
  }
}

/**
 * The timer for one answer: `timeouts.response` until its head arrives, `timeouts.idle` between two parts of its body. It
 * stops while the proxy waits for the client to send or to read. undici's own timers fire up to a second late.
 */
export class AnswerTime extends TimeoutEntry {
  readonly #limits: AnswerLimits;
  #control: RequestControl | undefined;
  /** The connection, while a body is being sent. */
  #sending: Connection | undefined;

  constructor(limits: AnswerLimits) {
    super();
    this.#limits = limits;
  }

  /** The request is about to be written to this connection. @param control aborts it on a timeout. */
  sending(connection: Connection, control: RequestControl): void {
    this.#control = control;
    this.#sending = connection;
    this.#limits.response.start(this);
  }

  /** Restarts the timer: a part of the request was written, or an interim answer arrived. */
  renew(): void {
    this.#limits.response.start(this);
  }

  /** The complete request was written. */
  sent(): void {
    this.#sending = undefined;
    this.#limits.response.start(this);
  }

  /** The head of the answer or a part of its body arrived, or the client reads again. */
  moved(): void {
    this.#limits.idle.start(this);
  }

  /** Nothing is expected from the backend for now. */
  stop(): void {
    this.list?.cancel(this);
  }

  override onTimeout(limit: TimeoutList): void {
    if (limit === this.#limits.idle) this.#abort("UND_ERR_BODY_TIMEOUT");
    // The backend takes everything that the client sends, so the client is slow.
    else if (this.#sending?.writableNeedDrain === false) limit.start(this);
    else this.#abort("UND_ERR_HEADERS_TIMEOUT");
  }

  #abort(code: BackendTimeout["code"]): void {
    this.#control?.abort(new BackendTimeout(code));
  }
}

import type { MirrorResult } from "../../core/route/mirror.ts";
import type { Permit } from "../../core/request/permit.ts";
import { TimeoutEntry } from "../../lib/async/timeout-list.ts";
import type { AnswerHandler, Connection, RequestControl } from "../http/connection.ts";
import { dispatchOf } from "../http/dispatch.ts";
import { failureOf, upstreamReason } from "../http/failures.ts";
import type { ForwardingSettings } from "../http/permitted-request.ts";
import type { Target } from "../pool/target.ts";
import type { Upstream } from "../pool/upstreams.ts";
import { BackendFault } from "../http/faults.ts";

/** The response is cut off after this many bytes, since it is discarded anyway. */
const MAX_ANSWER_BYTES = 1024 * 1024;

/** The copy of a request for another upstream. Its response is read, to reuse the connection, and discarded. */
export class MirroredRequest extends TimeoutEntry implements AnswerHandler {
  readonly #settings: Pick<ForwardingSettings, "outgoing" | "clock" | "observer">;
  readonly #upstream: Upstream;
  readonly #target: Target;
  readonly #done: (result: MirrorResult) => void;
  readonly #sentAt: number;
  #connection: Connection | undefined;
  #control: RequestControl | undefined;
  #maybeStale = false;
  #timedOut = false;
  #answerBytes = 0;
  #over = false;

  /** @param target has a slot for this request, which `done` releases. */
  constructor(
    settings: Pick<ForwardingSettings, "outgoing" | "clock" | "observer">,
    upstream: Upstream,
    target: Target,
    done: (result: MirrorResult) => void,
  ) {
    super();
    this.#settings = settings;
    this.#upstream = upstream;
    this.#target = target;
    this.#done = done;
    this.#sentAt = settings.clock.monotonic();
  }

  /** Sends it. Never throws. */
  send(permit: Permit, body: Buffer | undefined): void {
    this.#upstream.answerLimitsFor(permit.route).response.start(this);
    try {
      const target = this.#target;
      target.pool.dispatch(dispatchOf(permit, this.#settings.outgoing, body, target), this);
    } catch (error) {
      this.#fail(error);
    }
  }

  onConnection(connection: Connection): void {
    this.#connection = connection;
  }

  onRequestStart(control: RequestControl): void {
    this.#control = control;
    this.#maybeStale = this.#connection?.begin() ?? false;
    if (this.#timedOut || this.#over) control.abort(new BackendFault("client_gone"));
  }

  onBodySent(): void {
    this.#maybeStale = false;
  }

  onRequestSent(): void {
    // The time limit of the response began with the request.
  }

  onResponseStarted(): void {
    this.#maybeStale = false;
  }

  onResponseStart(_control: RequestControl, status: number): void {
    if (status < 200) return;
    const { clock, observer } = this.#settings;
    this.#upstream.states?.answered(this.#target, status);
    observer.upstreamAnswered(
      this.#upstream.name,
      status,
      (clock.monotonic() - this.#sentAt) / 1000,
    );
  }

  onResponseData(control: RequestControl, chunk: Buffer): void {
    this.#answerBytes += chunk.length;
    if (this.#answerBytes <= MAX_ANSWER_BYTES) return;
    this.#end("answered");
    control.abort(new BackendFault("client_gone"));
  }

  onResponseEnd(): void {
    this.#end("answered");
  }

  onResponseError(_control: RequestControl | null, error: Error): void {
    this.#fail(error);
  }

  /** `timeouts.response` limits the entire answer. */
  override onTimeout(): void {
    this.#timedOut = true;
    this.#control?.abort(new BackendFault("response_timeout"));
  }

  #fail(error: unknown): void {
    if (this.#over) return;
    const reason = upstreamReason(failureOf(error));
    if (reason !== undefined) {
      if (!(this.#maybeStale && reason === "reset")) {
        this.#upstream.states?.failed(this.#target, reason, this.#sentAt);
      }
      this.#settings.observer.upstreamFailed(this.#upstream.name, reason);
    }
    this.#end(this.#timedOut ? "timeout" : "failed");
  }

  #end(result: MirrorResult): void {
    if (this.#over) return;
    this.#over = true;
    this.list?.cancel(this);
    this.#done(result);
  }
}

import type { IncomingHttpHeaders } from "node:http";
import type { GateError } from "../../core/request/errors.ts";
import type { UpstreamErrorReason } from "../../core/request/outcome.ts";
import type { TimeoutList } from "../../lib/async/timeout-list.ts";
import { ClientAnswer } from "./client-answer.ts";
import { ClientBody } from "./client-body.ts";
import type { AnswerHandler, Connection, RequestControl } from "./connection.ts";
import { dispatchOf, type PermittedRequest } from "./dispatch.ts";
import { asError, BackendFault, failureOf, failureReason, upstreamReason } from "./failures.ts";
import { type Attempt, isUnwanted, whereToRetry } from "./repetition.ts";
import { breakOff } from "../grpc/deadline.ts";
import { Slot } from "../pool/slot.ts";
import { SentRequest, type Target } from "../pool/target.ts";
import type { AnswerLimits } from "../pool/upstreams.ts";

/**
 * One permitted request and its answer, over one connection or, if it is sent again, several. Its timeout is that of the
 * response until its head arrives, then that between two parts of its body. It stops while the proxy waits for the client.
 */
export class Exchange extends SentRequest implements AnswerHandler {
  readonly #permitted: PermittedRequest;
  readonly #slot: Slot;
  /** Undefined for a request without a body. */
  readonly #body: ClientBody | undefined;
  readonly #answer: ClientAnswer;
  readonly #limits: AnswerLimits;
  readonly #completion = Promise.withResolvers<void>();
  #state: ExchangeState = "waiting";
  #control: RequestControl | undefined;
  #retries = 0;
  sentAt = 0;
  /** The request has begun to be written, and its end has not been written yet. */
  #isSending = false;
  /** The connection was used before, and no byte of this request's body or answer has passed on it. */
  #maybeStale = false;

  constructor(permitted: PermittedRequest) {
    super();
    const { permit, upstream, transfer } = permitted;
    this.#permitted = permitted;
    this.#slot = new Slot(permitted);
    if (permit.request.bodyLength !== 0) this.#body = new ClientBody(permitted, this.#slot);
    this.#answer = new ClientAnswer(permitted, this.#slot, this);
    this.#limits = upstream.answerLimitsFor(permit.route);
    transfer.holder = this.#slot;
    transfer.exchange = this;
  }

  /** How often the request was sent. */
  get attempts(): number {
    return this.#state === "waiting" ? this.#retries : this.#retries + 1;
  }

  get target(): Target | undefined {
    return this.#slot.target;
  }

  /** Resolves and rejects like `Forwarder.forward`. */
  start(): Promise<void> {
    const { response, copy } = this.#permitted;
    response.on("close", this.#onClose);
    // A response that has already closed emits no further event.
    if (response.destroyed) this.#end("aborted");
    else if (this.#body !== undefined) this.#body.prepare(() => this.#send());
    else {
      copy?.end();
      this.#send();
    }
    return this.#completion.promise;
  }

  #send(avoid?: Target): void {
    if (this.#state !== "waiting") return;
    const target = this.#slot.take(avoid);
    if (target !== undefined) this.#sendTo(target);
    else void this.#wait().catch((error: unknown) => this.#fail(error));
  }

  async #wait(): Promise<void> {
    const target = await this.#slot.wait(this.#permitted.response);
    // The client may have left in the meantime.
    if (this.#state !== "waiting") this.#slot.release();
    else if (target !== undefined) this.#sendTo(target);
  }

  #sendTo(target: Target): void {
    const { permit, transfer, settings } = this.#permitted;
    this.#state = "sent";
    this.sentAt = settings.clock.monotonic();
    transfer.target = target.address;
    try {
      const content = this.#body?.content;
      const request = dispatchOf(permit, settings.outgoing, content, target, this.#retries);
      target.pool.dispatch(request, this);
    } catch (error) {
      this.#fail(error);
    }
  }

  onConnection(connection: Connection): void {
    this.#slot.connection = connection;
  }

  onRequestStart(control: RequestControl, wasUsed: boolean): void {
    this.#control = control;
    if (this.#isOver) return control.abort(new BackendFault("client_gone"));
    this.#maybeStale = wasUsed;
    this.#isSending = true;
    if (this.#retries === 0) this.#body?.expect();
    this.#limits.response.start(this);
  }

  onBodySent(): void {
    this.#maybeStale = false;
    this.#limits.response.start(this);
  }

  onRequestSent(): void {
    this.#isSending = false;
    this.#limits.response.start(this);
  }

  onResponseStarted(): void {
    this.#maybeStale = false;
  }

  onResponseStart(status: number, headers: IncomingHttpHeaders, statusMessage = ""): void {
    if (this.#isOver) return;
    if (status < 200) {
      this.#limits.response.start(this);
      return this.#answer.interim(status, headers);
    }
    const { response, upstream, settings } = this.#permitted;
    // The request turned out to be malformed and has been answered.
    if (response.headersSent) throw new BackendFault("client_gone");
    const { target } = this;
    const now = settings.clock.monotonic();
    if (target !== undefined) target.answeredAt = now;
    if (target !== undefined) upstream.states?.answered(target, status);
    if (status >= 502 && isUnwanted(this.#attempt, status)) throw new BackendFault("repeated");
    this.#body?.settle();
    this.#answer.begin(status, statusMessage, headers, now - this.sentAt);
    this.#state = "answering";
    this.#limits.idle.start(this);
  }

  onResponseData(chunk: Buffer): void {
    // Nothing has moved.
    if (this.#isOver || chunk.length === 0) return;
    this.#limits.idle.start(this);
    if (this.#answer.write(chunk)) return;
    this.#control?.pause();
    this.list?.cancel(this);
  }

  /** The client has taken what was written. */
  goOn(): void {
    if (this.#state !== "answering") return;
    this.#limits.idle.start(this);
    this.#control?.resume();
  }

  onResponseEnd(trailers: IncomingHttpHeaders | undefined): void {
    this.list?.cancel(this);
    this.#slot.release();
    if (this.#isOver) return;
    this.#control = undefined;
    this.#state = "answered";
    this.#answer.end(trailers);
  }

  onResponseError(error: Error): void {
    this.list?.cancel(this);
    if (this.#isOver) return;
    const failure = failureOf(error);
    if (this.#permitted.response.headersSent) return this.#breakOff(error, failure);
    const where = whereToRetry(this.#attempt, failure, this.#maybeStale, this.sentAt);
    if (where === undefined) this.#fail(failure);
    else this.#retry(where);
  }

  /** The rest of the answer cannot be written to the client: Node refuses a field or a trailer. */
  unwritable(cause: unknown): void {
    if (this.#isOver) return;
    const control = this.#control;
    const error = asError(cause);
    const failure = failureOf(error);
    if (this.#permitted.response.headersSent) this.#breakOff(error, failure);
    else this.#fail(failure);
    control?.abort(new BackendFault("client_gone"));
  }

  /** Ends an answer that has begun. */
  #breakOff(error: Error, failure: GateError): void {
    const reason = failureReason(error);
    this.#end(reason);
    if (reason !== "aborted") breakOff(this.#permitted.response, failure);
  }

  get #attempt(): Attempt {
    const { permit, upstream } = this.#permitted;
    const isReplayable = this.#body?.isReplayable !== false;
    return { permit, upstream, target: this.#slot.target, retries: this.#retries, isReplayable };
  }

  #retry(where: "same" | "other"): void {
    const { upstream, settings } = this.#permitted;
    const { target } = this.#slot;
    this.#state = "waiting";
    this.#retries += 1;
    settings.observer.upstreamRetried(upstream.name);
    this.#slot.release();
    this.#body?.renew();
    this.#send(where === "other" ? target : undefined);
  }

  /** A backend that takes everything that the client sends waits for a slow client. */
  get waitsForBackend(): boolean {
    return !this.#isSending || this.#slot.connection?.writableNeedDrain !== false;
  }

  override onTimeout(limit: TimeoutList): void {
    const isResponse = limit === this.#limits.response;
    if (isResponse && !this.waitsForBackend) return limit.start(this);
    this.#control?.abort(new BackendFault(isResponse ? "response_timeout" : "idle_timeout"));
  }

  /** The answer was sent, or the client has left: aborts what the backend is still doing. */
  readonly #onClose = (): void => {
    const { permit, request, response, settings } = this.#permitted;
    if (this.#state === "answered" && response.writableFinished) {
      this.#state = "done";
      if (permit.identity !== undefined) settings.reading.served(request.socket);
      return this.#completion.resolve();
    }
    this.cancel();
  };

  /** Ends what the backend is still doing. The client may get an answer from elsewhere. */
  cancel(): void {
    if (this.#isOver) return;
    const { target } = this.#slot;
    this.#end("aborted");
    target?.pool.withdraw?.(this);
    this.#control?.abort(new BackendFault("client_gone"));
  }

  #end(brokeOff: UpstreamErrorReason): void {
    const { transfer } = this.#permitted;
    transfer.abortReason ??= brokeOff;
    const isReason = this.#state !== "waiting" && transfer.abortReason === brokeOff;
    this.#leave("done", isReason ? brokeOff : undefined);
    this.#completion.resolve();
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    this.#leave("failed", upstreamReason(error));
    this.#completion.reject(error);
  }

  /** @param failure of the backend. */
  #leave(state: "done" | "failed", failure: UpstreamErrorReason | undefined): void {
    const { response, upstream, settings } = this.#permitted;
    this.#state = state;
    this.list?.cancel(this);
    this.#slot.release();
    response.off("close", this.#onClose);
    if (failure !== undefined) settings.observer.upstreamFailed(upstream.name, failure);
  }

  get #isOver(): boolean {
    return this.#state === "done" || this.#state === "failed";
  }
}

/**
 * - `waiting`: for a small body or a slot. Nothing has reached the backend.
 * - `sent`: handed to a connection. If the request may be repeated, the state returns to `waiting`.
 * - `answering`: the head of the answer has been written to the client.
 * - `answered`: the complete answer has arrived. The slot is free, even if the client still has to read.
 * - `done`: the client has read the answer or left, or the answer broke off.
 * - `failed`: nothing has been sent to the client; the caller answers.
 */
type ExchangeState = "waiting" | "sent" | "answering" | "answered" | "done" | "failed";

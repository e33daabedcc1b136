import type { IncomingHttpHeaders } from "node:http";
import type { BufferHolder } from "../../core/buffered-bytes.ts";
import { GateError } from "../../core/request/errors.ts";
import type { UpstreamErrorReason } from "../../core/request/outcome.ts";
import { AnswerTime } from "./answer-timeouts.ts";
import { ClientAnswer } from "./client-answer.ts";
import { ClientBody } from "./client-body.ts";
import type { AnswerHandler, Connection, RequestControl } from "./connection.ts";
import { dispatchOf } from "./dispatch.ts";
import { failureOf, failureReason, upstreamReason } from "./failures.ts";
import type { ExchangeState } from "./exchange-state.ts";
import type { ForwardingSettings, PermittedRequest } from "./permitted-request.ts";
import { Attempts, Repeated } from "./repetition.ts";
import { ClientGone } from "./request-body.ts";
import { breakOff } from "../grpc/break-off.ts";
import { Slot } from "../pool/slot.ts";
import type { Target } from "../pool/target.ts";

/** One permitted request and its answer, over one connection or, if that is stale, two. */
export class Exchange implements AnswerHandler, BufferHolder {
  readonly #settings: ForwardingSettings;
  readonly #permitted: PermittedRequest;
  readonly #slot: Slot;
  readonly #body: ClientBody;
  readonly #answer: ClientAnswer;
  readonly #time: AnswerTime;
  readonly #attempts: Attempts;
  readonly #completion = Promise.withResolvers<void>();
  #state: ExchangeState = "waiting";
  #control: RequestControl | undefined;
  #sentAt = 0;
  /** The connection was used before, and no byte of this request's body or answer has passed on it. */
  #maybeStale = false;
  #preempted = false;

  constructor(settings: ForwardingSettings, permitted: PermittedRequest) {
    const { permit, upstream, transfer } = permitted;
    this.#settings = settings;
    this.#permitted = permitted;
    this.#slot = new Slot(upstream, permit, settings, this);
    this.#body = new ClientBody(settings, permitted, this.#slot);
    this.#answer = new ClientAnswer(settings, permitted, this.#slot);
    this.#attempts = new Attempts(settings, permitted, this.#slot, this.#body);
    this.#time = new AnswerTime(upstream.answerLimitsFor(permit.route));
    transfer.holder = this;
  }

  /** Resolves and rejects like `Forwarder.forward`. */
  start(): Promise<void> {
    const { response } = this.#permitted;
    response.on("close", this.#onClose);
    try {
      // A response that has already closed emits no further event.
      if (response.destroyed) this.#end("aborted");
      else this.#body.prepare(() => this.#send());
    } catch (error) {
      this.#fail(error);
    }
    return this.#completion.promise;
  }

  /** The bytes held in addition to those in the client's socket. */
  get bufferedBytes(): number {
    const { bufferedBytes, replayBytes } = this.#body;
    return bufferedBytes + replayBytes + this.#slot.bufferedBytes(bufferedBytes);
  }

  /** @param avoid a target that has failed this request. */
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
    const { permit, transfer } = this.#permitted;
    this.#state = "sent";
    this.#sentAt = this.#settings.clock.monotonic();
    transfer.target = target.address;
    try {
      const request = dispatchOf(permit, this.#settings.outgoing, this.#body.content, target);
      target.pool.dispatch(request, this);
    } catch (error) {
      this.#fail(error);
    }
  }

  onConnection(connection: Connection): void {
    this.#slot.connection = connection;
  }

  onRequestStart(control: RequestControl): void {
    const { connection } = this.#slot;
    this.#control = control;
    if (this.#isOver || connection === undefined) {
      control.abort(new ClientGone());
      return;
    }
    this.#maybeStale = connection.begin();
    if (this.#attempts.retries === 0) this.#body.expect();
    this.#time.sending(connection, control);
  }

  onBodySent(): void {
    this.#maybeStale = false;
    this.#time.renew();
  }

  onRequestSent(): void {
    this.#time.sent();
  }

  onResponseStarted(): void {
    this.#maybeStale = false;
  }

  onResponseStart(
    _control: RequestControl,
    status: number,
    headers: IncomingHttpHeaders,
    statusMessage = "",
  ): void {
    if (this.#isOver) return;
    if (status < 200) {
      this.#time.renew();
      this.#answer.interim(status, headers);
      return;
    }
    const { response, transfer, upstream } = this.#permitted;
    // The request turned out to be malformed and has been answered.
    if (response.headersSent) throw new ClientGone();
    this.#attempts.answered(status);
    this.#answer.begin(status, statusMessage, headers);
    this.#state = "answering";
    this.#time.moved();
    const elapsedMs = this.#settings.clock.monotonic() - this.#sentAt;
    transfer.upstreamHeaderMs = elapsedMs;
    this.#settings.observer.upstreamAnswered(upstream.name, status, elapsedMs / 1000);
  }

  onResponseData(control: RequestControl, chunk: Buffer): void {
    // undici passes an empty chunk whenever it resumes.
    if (this.#isOver || chunk.length === 0) return;
    this.#time.moved();
    if (this.#answer.write(chunk, this)) return;
    control.pause();
    this.#time.stop();
  }

  /** The client has read, and the answer may continue. */
  goOn(): void {
    if (this.#isOver || this.#state === "answered") return;
    this.#time.moved();
    this.#control?.resume();
  }

  onResponseEnd(_control: RequestControl, trailers: IncomingHttpHeaders): void {
    this.#time.stop();
    this.#slot.release();
    if (this.#isOver) return;
    this.#state = "answered";
    this.#answer.end(trailers);
  }

  onResponseError(_control: RequestControl | null, error: Error): void {
    this.#time.stop();
    if (this.#isOver) return;
    const { response } = this.#permitted;
    if (response.headersSent) {
      const reason = failureReason(error);
      this.#end(reason);
      if (reason !== "aborted") breakOff(response, failureOf(error));
      return;
    }
    const failure = failureOf(error);
    const where =
      error instanceof Repeated
        ? "other"
        : this.#attempts.failed(failure, this.#maybeStale, this.#sentAt);
    if (where === undefined) this.#fail(failure);
    else this.#retry(where);
  }

  #retry(where: "same" | "other"): void {
    const { target } = this.#slot;
    this.#state = "waiting";
    this.#attempts.begin();
    this.#slot.release();
    this.#body.renew();
    this.#send(where === "other" ? target : undefined);
  }

  /** Gives up the slot of a slow client to another request. */
  preempt(): void {
    const { response } = this.#permitted;
    this.#preempted = true;
    const error = new GateError("request_timeout", { reason: "slow_client" });
    if (response.headersSent || !this.#body.fail(error)) response.destroy();
  }

  /** The answer was sent, or the client has left: aborts what the backend is still doing. */
  readonly #onClose = (): void => {
    const complete = this.#state === "answered";
    const { target } = this.#slot;
    this.#end(complete && this.#answer.delivered() ? undefined : "aborted");
    if (complete) return;
    target?.pool.withdraw?.(this);
    this.#control?.abort(new ClientGone());
  };

  #end(brokeOff: UpstreamErrorReason | undefined): void {
    const { transfer, upstream } = this.#permitted;
    const hadBackend = this.#state !== "waiting";
    this.#leave("done");
    transfer.abortReason ??= this.#preempted ? "slow_client" : brokeOff;
    if (hadBackend && brokeOff !== undefined && transfer.abortReason === brokeOff) {
      this.#settings.observer.upstreamFailed(upstream.name, brokeOff);
    }
    this.#completion.resolve();
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    const reason = error instanceof GateError ? upstreamReason(error) : undefined;
    this.#leave("failed");
    if (reason !== undefined) {
      this.#settings.observer.upstreamFailed(this.#permitted.upstream.name, reason);
    }
    this.#completion.reject(error);
  }

  #leave(state: "done" | "failed"): void {
    this.#state = state;
    this.#time.stop();
    this.#slot.release();
    this.#permitted.response.off("close", this.#onClose);
  }

  get #isOver(): boolean {
    return this.#state === "done" || this.#state === "failed";
  }
}

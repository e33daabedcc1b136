import type { Permit } from "../../core/request/permit.ts";
import type { Mirror, MirrorResult } from "../../core/route/route.ts";
import { TimeoutEntry, TimeoutList } from "../../lib/async/timeout-list.ts";
import { dispatchOf, type ForwardingSettings } from "../http/dispatch.ts";
import type { Requester } from "../pool/in-flight-counts.ts";
import type { Upstream } from "../pool/upstreams.ts";
import type { AnswerHandler, RequestControl } from "../http/connection.ts";
import { BackendFault, failureOf, upstreamReason } from "../http/failures.ts";
import { SentRequest, type Target } from "../pool/target.ts";
import type { BufferedBytes } from "../../server/listener/connection-ledger.ts";

/** The response is cut off after this many bytes, since it is discarded anyway. */
const MAX_ANSWER_BYTES = 1024 * 1024;

/** The copy of a request for another upstream. Its response is read, to reuse the connection, and discarded. */
class MirroredRequest extends SentRequest implements AnswerHandler {
  readonly #settings: ForwardingSettings;
  readonly #upstream: Upstream;
  readonly target: Target;
  readonly sentAt: number;
  readonly waitsForBackend = true;
  readonly #done: (result: MirrorResult) => void;
  #control: RequestControl | undefined;
  #maybeStale = false;
  #timedOut = false;
  #answerBytes = 0;
  #over = false;

  /** @param target has a slot for this request, which `done` releases. */
  constructor(
    settings: ForwardingSettings,
    upstream: Upstream,
    target: Target,
    done: (result: MirrorResult) => void,
  ) {
    super();
    this.#settings = settings;
    this.#upstream = upstream;
    this.target = target;
    this.#done = done;
    this.sentAt = settings.clock.monotonic();
  }

  /** Sends it. Never throws. The time limit of the response begins now, since the body is complete. */
  send(permit: Permit, body: Buffer | undefined): void {
    this.#upstream.answerLimitsFor(permit.route).response.start(this);
    try {
      const target = this.target;
      target.pool.dispatch(dispatchOf(permit, this.#settings.outgoing, body, target), this);
    } catch (error) {
      this.#fail(error);
    }
  }

  onRequestStart(control: RequestControl, wasUsed: boolean): void {
    this.#control = control;
    this.#maybeStale = wasUsed;
    if (this.#timedOut || this.#over) control.abort(new BackendFault("client_gone"));
  }

  onBodySent(): void {
    this.#maybeStale = false;
  }

  onResponseStarted(): void {
    this.#maybeStale = false;
  }

  onResponseStart(status: number): void {
    if (status < 200) return;
    const { clock, observer } = this.#settings;
    this.target.answeredAt = clock.monotonic();
    this.#upstream.states?.answered(this.target, status);
    const seconds = (this.target.answeredAt - this.sentAt) / 1000;
    observer.upstreamAnswered(this.#upstream.name, status, seconds);
  }

  onResponseData(chunk: Buffer): void {
    this.#answerBytes += chunk.length;
    if (this.#answerBytes <= MAX_ANSWER_BYTES) return;
    this.#end("answered");
    this.#control?.abort(new BackendFault("client_gone"));
  }

  onResponseEnd(): void {
    this.#end("answered");
  }

  onResponseError(error: Error): void {
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
        this.#upstream.states?.failed(this.target, reason, this.sentAt);
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

/** Called once, when a copy has ended. */
interface CopyEvents {
  /** The request is complete. @param reserved bytes to be freed when the copy is no longer needed. */
  copied(body: Buffer | undefined, reserved: number): void;
  /** The request is not copied. */
  dropped(why: MirrorResult): void;
}

/** Copies the body of a request as it passes, within bounds. It never delays the request. */
export class BodyCopy extends TimeoutEntry {
  readonly #most: number;
  readonly #buffered: Pick<BufferedBytes, "reserve" | "free">;
  readonly #events: CopyEvents;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #over = false;

  /** @param most the maximum size, in bytes. */
  constructor(most: number, buffered: Pick<BufferedBytes, "reserve" | "free">, events: CopyEvents) {
    super();
    this.#most = most;
    this.#buffered = buffered;
    this.#events = events;
  }

  /** Begins. @param length of the body; negative if it is unknown. @param limit the time until it must be complete. */
  begin(length: number, limit: TimeoutList): void {
    if (length > this.#most) this.drop("body_too_large");
    else if (length !== 0) limit.start(this);
  }

  /** A part of the body has arrived. It is copied, since it may be a view of a large buffer. */
  add(chunk: Buffer): void {
    if (this.#over) return;
    if (this.#bytes + chunk.length > this.#most) return this.drop("body_too_large");
    if (!this.#buffered.reserve(chunk.length)) return this.drop("memory");
    this.#bytes += chunk.length;
    this.#chunks.push(Buffer.from(chunk));
  }

  /** The request is complete. */
  end(): void {
    if (this.#over) return;
    this.#leave();
    const body = this.#bytes === 0 ? undefined : Buffer.concat(this.#chunks);
    this.#chunks = [];
    this.#events.copied(body, this.#bytes);
  }

  /** Drops the copy, unless it is complete. */
  drop(why: MirrorResult): void {
    if (this.#over) return;
    this.#leave();
    this.#chunks = [];
    this.#buffered.free(this.#bytes);
    this.#events.dropped(why);
  }

  override onTimeout(): void {
    this.drop("body_too_slow");
  }

  #leave(): void {
    this.#over = true;
    this.list?.cancel(this);
  }
}

/** The time for a body to be complete, in milliseconds. */
const BODY_MS = 10_000;

/**
 * To an upstream, all copies are one requester, so that they never take the slots reserved for others. No subject
 * has this name.
 */
const MIRRORED = "\0mirrored";

/** Sends copies of requests to other upstreams and counts the results. The requests never wait for them. */
export class Mirrors {
  readonly #upstreams: ReadonlyMap<string, Upstream>;
  readonly #settings: ForwardingSettings;
  readonly #bodies: TimeoutList;

  constructor(upstreams: ReadonlyMap<string, Upstream>, settings: ForwardingSettings) {
    this.#upstreams = upstreams;
    this.#settings = settings;
    this.#bodies = new TimeoutList(BODY_MS, settings.clock);
  }

  /** Returns the receiver of the body of a request; undefined if the request is not mirrored. */
  copyOf(permit: Permit, mirror: Mirror): BodyCopy | undefined {
    const upstream = this.#upstreams.get(mirror.upstream);
    if (upstream === undefined || Math.random() * 100 >= mirror.percent) return undefined;
    const { buffered, observer } = this.#settings;
    const copy = new BodyCopy(mirror.bodyBytes, buffered, {
      dropped: (why) => observer.requestMirrored(mirror.upstream, why),
      // The request itself goes first.
      copied: (body, reserved) =>
        void setImmediate(() => this.#send(upstream, permit, body, reserved)),
    });
    copy.begin(permit.request.bodyLength, this.#bodies);
    return copy;
  }

  #send(upstream: Upstream, permit: Permit, body: Buffer | undefined, reserved: number): void {
    const requester: Requester = { client: permit.request.network, user: MIRRORED };
    const target = upstream.take(requester);
    const done = (result: MirrorResult): void => {
      if (target !== undefined) upstream.release(target, requester);
      this.#settings.buffered.free(reserved);
      this.#settings.observer.requestMirrored(upstream.name, result);
    };
    if (target === undefined) done("no_connection");
    else new MirroredRequest(this.#settings, upstream, target, done).send(permit, body);
  }
}

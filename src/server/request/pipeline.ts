import type {
  IncomingRequest,
  OutgoingResponse,
  TrackedOutgoing,
  UpgradeRequest,
} from "../../core/request/http-message.ts";
import type { Answer, RulesInForce } from "./gate.ts";
import { decide, type Decision } from "./decide.ts";
import { GateError } from "../../core/request/errors.ts";
import type { Log } from "../../core/log.ts";
import type { Observer } from "../../core/observer.ts";
import { isRefusalReason } from "../../core/request/outcome.ts";
import { Permit } from "../../core/request/permit.ts";
import type { Clock } from "../../lib/clock.ts";
import { errorAnswer, forGrpc, writeAnswer } from "./write-answer.ts";
import { discardUnreadBody } from "../listener/discard-body.ts";
import { requestIdOf } from "./intake.ts";
import { CLIENT_GONE, outcomeOf, RequestContext } from "./request-context.ts";
import type { StreamEnds } from "./stream-ends.ts";
import type { RateVerdict } from "../../policy/rates/rate-limiter.ts";
import type { Route } from "../../core/route/route.ts";

/** Sends an answer, unless one has begun, and discards the rest of the client's body. @returns the number of body bytes sent. */
export function send(answer: Answer, request: IncomingRequest, response: TrackedOutgoing): number {
  if (response.headersSent || response.destroyed) return 0;
  response.whole = true;
  if (answer.close) response.shouldKeepAlive = false;
  const body = request.method === "HEAD" ? "" : answer.body;
  writeAnswer(answer, response, body);
  discardUnreadBody(request);
  return Buffer.byteLength(body);
}

/**
 * Sets the fields of draft-ietf-httpapi-ratelimit-headers-10 on any answer. `t` equals `Retry-After` on a refusal; otherwise
 * it is the number of seconds until the whole burst is available again.
 */
function tellRate(
  response: OutgoingResponse,
  { name, rateLimit }: Route,
  verdict: RateVerdict,
): void {
  if (rateLimit === undefined) return;
  const { requests, withinMs } = rateLimit;
  response.setHeader("RateLimit-Policy", `"${name}";q=${requests};w=${withinMs / 1000}`);
  response.setHeader(
    "RateLimit",
    `"${name}";r=${verdict.remaining};t=${Math.ceil(verdict.waitMs / 1000)}`,
  );
}

export interface PipelineOptions {
  /** Each request takes the current rules once, when its head has arrived. */
  readonly rules: RulesInForce;
  readonly nextId: () => number;
  /** Ends what runs when its token does. */
  readonly streams: Pick<StreamEnds, "started" | "finished" | "hasEnded">;
  readonly observer: Observer;
  readonly log: Log;
  readonly clock: Clock;
}

/** Handles each request from its head to its log line. */
export class Pipeline {
  readonly #options: PipelineOptions;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  /** Answers one request. Never throws. */
  handle(incoming: IncomingRequest, response: TrackedOutgoing): Promise<void> {
    return this.#run(this.#begin(incoming, response, undefined));
  }

  /** Answers one request to switch protocols. Never throws. Over HTTP/1.1, `response` is attached to the request's socket. */
  handleUpgrade(
    incoming: IncomingRequest,
    response: TrackedOutgoing,
    switching: Pick<UpgradeRequest, "head" | "stream">,
  ): Promise<void> {
    return this.#run(
      this.#begin(incoming, response, { request: incoming, response, ...switching }),
    );
  }

  /** Refuses a request that Node rejects. */
  refuse(incoming: IncomingRequest, response: TrackedOutgoing, error: GateError): void {
    const context = this.#begin(incoming, response, undefined);
    this.#answerError(error, context);
    this.#finish(context);
  }

  #begin(
    incoming: IncomingRequest,
    response: TrackedOutgoing,
    upgrade: UpgradeRequest | undefined,
  ): RequestContext {
    const { observer, nextId, clock, rules } = this.#options;
    observer.requestStarted();
    const { current } = rules;
    const { gate } = current;
    gate.acquire();
    const context = new RequestContext(clock.monotonic(), current, incoming, response, upgrade);
    response.id = nextId();
    response.transfer = context.transfer;
    context.transfer.noReferrer = gate.tokensInUrls;
    // Before anything can be refused: to the proxy, each refusal must be one.
    context.transfer.question = gate.decisions?.questionOf(incoming, response);
    if (gate.cors !== undefined) context.transfer.cors = gate.cors.fields(incoming.headers.origin);
    return context;
  }

  async #run(context: RequestContext): Promise<void> {
    const { incoming, response, transfer, upgrade } = context;
    const { rules, streams } = this.#options;
    try {
      if (rules.draining) response.shouldKeepAlive = false;
      let request = context.rules.intake(incoming, response.id);
      const { decisions } = context.gate;
      if (decisions?.isCalled(request) === true) {
        const body = await decisions.readCall(request, context);
        this.#renew(context);
        transfer.question = await context.gate.decisions?.questionIn(request, body, incoming);
        if (transfer.question === undefined) throw new GateError("no_route");
      }
      if (transfer.question !== undefined) {
        // The certificate is that of the proxy: what it asks about says nothing of it.
        const { clientCertificate } = request.connection;
        if (clientCertificate !== undefined) context.gate.certificates?.check(clientCertificate);
        request = transfer.question.subject(request);
      }
      context.request = request;
      context.requestId = request.requestId;
      const { metadata } = context.gate;
      if (metadata !== undefined) transfer.resourceMetadata = metadata.addressFor(request);
      let decision = decide(request, context);
      while (decision instanceof Promise) {
        const { ruling } = rules;
        decision = this.#inForce(await decision, ruling, context);
      }
      context.decision = decision;
      this.#count(decision, response);
      const { action, identity } = decision;
      if (action instanceof GateError) throw action;
      if (transfer.question !== undefined) {
        // Our own endpoints are asked themselves.
        if (!(action instanceof Permit)) throw new GateError("no_route");
        transfer.bytesOut = send(transfer.question.yes(action), incoming, response);
        return;
      }
      if (!(action instanceof Permit)) {
        const answer = await action.answer({ request, incoming, response, identity, transfer });
        transfer.bytesOut = send(answer, incoming, response);
        return;
      }
      const { forwarder } = context.gate;
      if (forwarder === undefined) throw new GateError("no_route", { reason: "decisions_only" });
      response.permit = action;
      streams.started(context, action);
      if (upgrade === undefined) await forwarder.forward(action, incoming, response, transfer);
      else context.status = await forwarder.upgrade(action, upgrade, transfer);
      // Over HTTP/1.1, a WebSocket has taken the connection over.
      const mayHaveBody = upgrade === undefined || upgrade.stream !== undefined;
      if (!incoming.complete && mayHaveBody) discardUnreadBody(incoming);
    } catch (error) {
      this.#answerError(error, context);
    } finally {
      this.#finish(context);
    }
  }

  /**
   * Returns a decision that took time, or decides again if another configuration or other keys have come into force in
   * the meantime, or if the token has ended while a server was asked about its caller.
   *
   * @param before the ruling under which it was made.
   */
  #inForce(
    decision: Decision,
    before: number,
    context: RequestContext,
  ): Decision | Promise<Decision> {
    const { rules, streams } = this.#options;
    const { action, identity } = decision;
    if (action instanceof GateError) return decision;
    const { gate } = rules.current;
    const ended = action instanceof Permit && streams.hasEnded(identity);
    if (gate === context.gate && rules.ruling === before && !ended) return decision;
    context.decision = decision;
    this.#count(decision, context.response);
    decision.release?.();
    this.#renew(context);
    return decide(decision.request, context);
  }

  /** Moves a request that has waited to the gate that is in force now. */
  #renew(context: RequestContext): void {
    const { gate } = this.#options.rules.current;
    gate.acquire();
    context.gate.release();
    context.gate = gate;
  }

  #count({ tokenCache, auth, reason, rate, route }: Decision, response: TrackedOutgoing): void {
    const { observer } = this.#options;
    if (tokenCache !== undefined) observer.tokenCache(tokenCache);
    if (auth !== undefined && reason !== undefined) observer.authDecided(auth, reason);
    if (route !== undefined && rate !== undefined) tellRate(response, route, rate);
  }

  /** Answers with the error that was thrown, unless the client has left. */
  #answerError(thrown: unknown, context: RequestContext): void {
    const { incoming, response, transfer } = context;
    const { id } = response;
    // Whatever interrupted the request has answered and counted it.
    if (response.interruption !== undefined) return;
    const { observer } = this.#options;
    const error = thrown instanceof GateError ? thrown : this.#unexpected(thrown, id);
    context.reason = error.reason;
    if (isRefusalReason(error.code)) observer.requestRefused(error.code);
    if (response.destroyed || incoming.socket.destroyed) {
      context.status = CLIENT_GONE;
      return;
    }
    if (error.code === "invalid_certificate") response.announceClose?.();
    context.requestId ||= requestIdOf(incoming.headers["x-request-id"], id);
    const refusal = errorAnswer(error, id, context.requestId, {
      realm: context.rules.realm,
      resourceMetadata: transfer.resourceMetadata,
      dpopAlgorithms: context.gate.tokens.proofs?.algorithms,
      byCertificate: context.decision?.route?.auth === "certificate",
    });
    const { question } = transfer;
    const page = context.gate.sessions?.pageOf(refusal, error, context);
    const own = page ?? (question === undefined ? forGrpc(refusal, error, incoming) : refusal);
    const answer = withRouteHeaders(own, context.decision);
    transfer.bytesOut = send(question?.no(answer) ?? answer, incoming, response);
  }

  #unexpected(thrown: unknown, id: number): GateError {
    this.#options.log.error("a request failed unexpectedly", { id, error: thrown });
    return new GateError("internal", { cause: thrown });
  }

  #finish(context: RequestContext): void {
    const { clock, observer } = this.#options;
    this.#options.streams.finished(context);
    try {
      observer.requestFinished(outcomeOf(context, clock.monotonic()));
    } finally {
      context.decision?.release?.();
      context.gate.release();
    }
  }
}

/** Adds to one of our own answers what its route sets on all answers. Our own fields stay as they are. */
function withRouteHeaders(answer: Answer, decision: Decision | undefined): Answer {
  const modifier = decision?.route?.responseHeaders;
  if (decision === undefined || modifier === undefined) return answer;
  const { headers } = answer;
  return { ...answer, headers: [...headers, ...modifier.additions(headers, decision)] };
}

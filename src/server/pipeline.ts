import type { IncomingMessage } from "node:http";
import type { Endpoint } from "../core/endpoint.ts";
import { GateError } from "../core/errors.ts";
import type { Gate } from "../core/gate.ts";
import type { GateRequest } from "../core/gate-request.ts";
import type { Log } from "../core/log.ts";
import type { Observer } from "../core/observer.ts";
import type { Permit } from "../core/permit.ts";
import { REJECTIONS } from "../core/outcome.ts";
import type { Clock } from "../lib/clock.ts";
import { Admission } from "./admission.ts";
import { errorAnswer, send } from "./answer.ts";
import { finishReading } from "./discard-rest.ts";
import { type Intake, requestIdOf } from "./intake.ts";
import { beginProgress, CLIENT_GONE, outcomeOf, type Progress } from "./progress.ts";
import { limitAddress, limitSubject } from "./rate-limits.ts";
import type { TrackedResponse } from "./tracked-response.ts";
import { refuseOtherUpgrades } from "./upgrade-request.ts";

export interface PipelineOptions {
  /** The generation of the gate that is current now. */
  readonly gate: () => Gate;
  readonly intake: () => Intake;
  readonly nextId: () => number;
  /** The `realm` of challenges. */
  readonly realm: () => string;
  readonly observer: Observer;
  readonly log: Log;
  readonly clock: Clock;
  /** Whether every answer ends its connection, since the proxy is about to stop. */
  readonly draining: () => boolean;
}

/** What a request to switch protocols brings besides the request. */
interface Upgrade {
  readonly head: Buffer;
}

/** The way of one request, from its head to its log line. */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #admission: Admission;

  constructor(options: PipelineOptions) {
    this.#options = options;
    this.#admission = new Admission(options.observer);
  }

  /** Answers one request. Never throws. */
  handle(incoming: IncomingMessage, response: TrackedResponse): Promise<void> {
    return this.#run(incoming, response, undefined);
  }

  /** Answers one request to switch protocols. Never throws. `response` writes to the request's socket. */
  handleUpgrade(incoming: IncomingMessage, response: TrackedResponse, head: Buffer): Promise<void> {
    return this.#run(incoming, response, { head });
  }

  /** Answers a request that Node itself refuses. */
  refuse(incoming: IncomingMessage, response: TrackedResponse, error: GateError): void {
    const progress = this.#begin(response);
    this.#answerError(error, progress, incoming, response);
    this.#finish(progress, incoming, response, false);
  }

  async #run(
    incoming: IncomingMessage,
    response: TrackedResponse,
    upgrade: Upgrade | undefined,
  ): Promise<void> {
    const progress = this.#begin(response);
    try {
      if (this.#options.draining()) response.shouldKeepAlive = false;
      const gate = this.#options.gate();
      const request = this.#options.intake()(incoming, progress.id);
      progress.request = request;
      progress.requestId = request.requestId;
      const endpoint = ownEndpoint(gate, request, upgrade);
      if (endpoint === undefined) {
        await this.#pass(gate, request, progress, incoming, response, upgrade);
        if (upgrade === undefined) finishReading(incoming);
      } else {
        await this.#answerOurselves(gate, endpoint, request, progress, incoming, response);
      }
    } catch (error) {
      this.#answerError(error, progress, incoming, response);
    } finally {
      this.#finish(progress, incoming, response, upgrade !== undefined);
    }
  }

  #begin(response: TrackedResponse): Progress {
    this.#options.observer.requestStarted();
    response.id = this.#options.nextId();
    return beginProgress(response.id, this.#options.clock.monotonic());
  }

  async #answerOurselves(
    gate: Gate,
    endpoint: Endpoint,
    request: GateRequest,
    progress: Progress,
    incoming: IncomingMessage,
    response: TrackedResponse,
  ): Promise<void> {
    progress.route = endpoint.name;
    if (!endpoint.methods.includes(request.method)) {
      throw new GateError("method_not_allowed", { allow: endpoint.methods.join(", ") });
    }
    const identity = await this.#admission.callerFor(endpoint.auth, gate, request, progress);
    if (identity !== undefined) this.#admission.allowed(progress);
    const { transfer } = progress;
    const answer = await endpoint.answer({ request, incoming, response, identity, transfer });
    transfer.bytesOut = send(answer, incoming, response);
  }

  #pass(
    gate: Gate,
    request: GateRequest,
    progress: Progress,
    incoming: IncomingMessage,
    response: TrackedResponse,
    upgrade: Upgrade | undefined,
  ): Promise<void> {
    const route = gate.findRoute(request);
    if (route !== undefined) progress.route = route.name;
    limitAddress(route, request, response);
    const onwards = (permit: Permit): Promise<void> => {
      limitSubject(permit, response);
      return upgrade === undefined
        ? gate.forwarder.forward(permit, incoming, response, progress.transfer)
        : this.#switch(gate, permit, progress, incoming, response, upgrade);
    };
    const permit = this.#admission.admit(gate, request, route, progress);
    return permit instanceof Promise ? permit.then(onwards) : onwards(permit);
  }

  async #switch(
    gate: Gate,
    permit: Permit,
    progress: Progress,
    incoming: IncomingMessage,
    response: TrackedResponse,
    { head }: Upgrade,
  ): Promise<void> {
    refuseOtherUpgrades(permit.request, incoming);
    const { transfer } = progress;
    progress.status = await gate.forwarder.upgrade(permit, incoming, head, response, transfer);
  }

  /** Turns whatever was thrown into the answer of the table; a client that left gets none. */
  #answerError(
    thrown: unknown,
    progress: Progress,
    incoming: IncomingMessage,
    response: TrackedResponse,
  ): void {
    // Who interrupted it has answered and counted it.
    if (response.interruption !== undefined) return;
    const error = thrown instanceof GateError ? thrown : this.#unexpected(thrown, progress);
    const { realm, observer } = this.#options;
    progress.reason = error.reason ?? error.code;
    this.#admission.refused(error, progress);
    const rejection = REJECTIONS.find((word) => word === error.code);
    if (rejection !== undefined) observer.rejected(rejection);
    if (response.destroyed || incoming.socket.destroyed) {
      progress.status = CLIENT_GONE;
      return;
    }
    progress.requestId ||= requestIdOf(incoming.headers["x-request-id"], progress.id);
    const answer = errorAnswer(error, progress.id, progress.requestId, realm());
    progress.transfer.bytesOut = send(answer, incoming, response);
  }

  #unexpected(thrown: unknown, progress: Progress): GateError {
    this.#options.log.error("a request failed unexpectedly", { id: progress.id, error: thrown });
    return new GateError("internal", { cause: thrown, reason: "internal" });
  }

  #finish(
    progress: Progress,
    incoming: IncomingMessage,
    response: TrackedResponse,
    isUpgrade: boolean,
  ): void {
    const { clock, observer } = this.#options;
    const durationMs = clock.monotonic() - progress.started;
    observer.requestFinished(outcomeOf(progress, incoming, response, isUpgrade, durationMs));
  }
}

/** Our own endpoint at this path; none of them can be upgraded. */
function ownEndpoint(
  gate: Gate,
  request: GateRequest,
  upgrade: Upgrade | undefined,
): Endpoint | undefined {
  const endpoint = gate.endpoints.get(request.matchPath);
  if (endpoint !== undefined && upgrade !== undefined) throw new GateError("upgrade_unsupported");
  return endpoint;
}

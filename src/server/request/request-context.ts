import type { IncomingHttpHeaders } from "node:http";
import { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { Duplex } from "node:stream";
import type {
  IncomingRequest,
  TrackedOutgoing,
  UpgradeRequest,
} from "../../core/request/http-message.ts";
import type { Gate, Rules } from "./gate.ts";
import type { Decision } from "./decide.ts";
import type { Reason } from "../../core/request/errors.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { LoggedRequest, Outcome } from "../../core/request/outcome.ts";
import { Transfer } from "../../core/request/transfer.ts";
import { WheelEntry } from "../../lib/async/timing-wheel.ts";
import { unmapAddress } from "../../lib/http/networks.ts";

/** The client left before it got its answer. nginx's number, used in log and metrics only. */
export const CLIENT_GONE = 499;

/** Everything known about one request, from its head to its log line. */
export class RequestContext extends WheelEntry<RequestContext> {
  /** Monotonic, in milliseconds. */
  readonly started: number;
  readonly incoming: IncomingRequest;
  readonly response: TrackedOutgoing;
  /** Undefined if the request does not ask to switch protocols. */
  readonly upgrade: UpgradeRequest | undefined;
  readonly transfer = new Transfer();
  /** The rules in force when its head had arrived. */
  readonly rules: Rules;
  /** The gate that the request holds until it ends: that of `rules`, or a newer one. */
  gate: Gate;
  /** Empty until intake has read the request or an error is answered. */
  requestId = "";
  request: GateRequest | undefined;
  decision: Decision | undefined;
  /** The reason of the error that ended the request. */
  reason: Reason | undefined;
  /** The status for the log where `response` does not have it: 101, 200 of a WebSocket over HTTP/2, or 499. */
  status = 0;

  constructor(
    started: number,
    rules: Rules,
    incoming: IncomingRequest,
    response: TrackedOutgoing,
    upgrade: UpgradeRequest | undefined,
  ) {
    super();
    this.started = started;
    this.rules = rules;
    this.gate = rules.gate;
    this.incoming = incoming;
    this.response = response;
    this.upgrade = upgrade;
  }

  /** The headers of the request. */
  get headers(): IncomingHttpHeaders {
    return this.transfer.question?.headers ?? this.incoming.headers;
  }
}

/** Summarises a request that has ended. @param now monotonic, in milliseconds. */
export function outcomeOf(context: RequestContext, now: number): Outcome {
  const { gate, incoming, response, request, decision, transfer } = context;
  const { interruption } = response;
  const left = transfer.abortReason === "aborted" && interruption === undefined;
  const status = context.status || (left ? CLIENT_GONE : response.statusCode);
  const identity = decision?.identity;
  return {
    id: response.id,
    requestId: context.requestId,
    client: request?.client ?? unmapAddress(incoming.socket.remoteAddress ?? ""),
    method: request?.method ?? incoming.method ?? "",
    host: request?.authority ?? "",
    path: request?.path ?? pathAlone(incoming.url ?? ""),
    route: (decision?.endpoint ?? decision?.route)?.name ?? "none",
    upstream: transfer.upstream,
    target: transfer.target,
    status,
    source: sourceOf(context),
    auth: decision?.auth,
    reason: interruption ?? transfer.abortReason ?? context.reason ?? decision?.reason,
    subject: identity?.subject,
    bytesIn: transfer.bytesIn,
    bytesOut: transfer.bytesOut,
    durationMs: now - context.started,
    upstreamMs: transfer.upstreamHeaderMs,
    protocol: context.upgrade === undefined ? `HTTP/${incoming.httpVersion}` : "websocket",
    fields: gate.accessFields && gate.accessFields(loggedOf(context, status)),
  };
}

function loggedOf(
  { headers, incoming, decision, transfer }: RequestContext,
  status: number,
): LoggedRequest {
  const { socket } = incoming;
  return {
    headers,
    status,
    identity: decision?.identity,
    secure: socket instanceof TLSSocket,
    tlsVersion: socket instanceof TLSSocket ? (socket.getProtocol() ?? undefined) : undefined,
    attempts: transfer.exchange?.attempts ?? 0,
  };
}

function sourceOf({ transfer }: RequestContext): Outcome["source"] {
  if (transfer.question !== undefined) return "decision";
  return transfer.upstreamHeaderMs === undefined ? "self" : "upstream";
}

/**
 * Summarizes what never became a request.
 *
 * @param socket the client's connection; anything but a `Socket` has no address.
 */
export function outcomeOfRefusal(
  known: Pick<Outcome, "id" | "requestId" | "method" | "path" | "status" | "reason">,
  socket: Duplex,
): Outcome {
  return {
    ...known,
    client: unmapAddress(socket instanceof Socket ? (socket.remoteAddress ?? "") : ""),
    host: "",
    route: "none",
    upstream: undefined,
    target: undefined,
    source: "self",
    auth: undefined,
    subject: undefined,
    bytesIn: 0,
    bytesOut: 0,
    durationMs: 0,
    upstreamMs: undefined,
    protocol: "HTTP/1.1",
  };
}

/** The path of a refused target without the parts that may hold secrets: the query, and an authority with a password. */
function pathAlone(url: string): string {
  return url.startsWith("/") ? url.replace(/[?#].*$/s, "") : "";
}

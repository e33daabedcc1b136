import type { Configuration } from "../../config/schema/configuration-schema.ts";
import type { Decision } from "../../core/request/decision.ts";
import { errorRow, GateError } from "../../core/request/errors.ts";
import type { DryRunRequest, ExplainedVerdict, Explanation } from "../../core/explanation.ts";
import type { Gate } from "../../core/request/gate.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import { newTrace } from "../../core/request/token-verifier.ts";
import { Permit } from "../../core/request/permit.ts";
import { explainRequirements } from "../../policy/requirements.ts";
import { decide } from "../../server/request/decide.ts";
import { createIntake } from "../../server/request/intake.ts";
import { type ReadHead, readHead } from "../../server/admin/read-head.ts";
import { intakeOptionsOf, routesOf } from "../gate/from-configuration.ts";
import { explainBackend } from "./backend.ts";
import { type ExplainerAloneOptions, withOwnGate } from "./dry-run-gate.ts";
import { refusalDetail } from "./refusal-detail.ts";
import { explainRoutes, overlapNotes } from "./routes.ts";
import { explainToken } from "./explained-token.ts";
import type { TokenSettings } from "./token-words.ts";

/**
 * Explains what a gate decides about a request, and why. Sends nothing to a backend, and changes no counts.
 *
 * @param gate a gate built from the configuration.
 */
export async function explain(
  options: TokenSettings,
  gate: Gate,
  dryRun: DryRunRequest,
): Promise<Explanation> {
  const { configuration } = options;
  try {
    const read = await readRequest(configuration, dryRun);
    const upgrade = read.upgrade ? { request: read.message } : undefined;
    const context = { gate, upgrade, dryRun: true, trace: newTrace() } as const;
    const decision = await decide(read.request, context);
    return explained(options, dryRun, read, decision);
  } catch (error) {
    if (!(error instanceof GateError)) throw error;
    return {
      verdict: { ...refused(error, dryRun, configuration), route: "none", wouldDeny: undefined },
      request: undefined,
      token: undefined,
      requirements: [],
      backend: undefined,
      routes: explainRoutes(routesOf(configuration), undefined),
      notes: connectionNotes(configuration, dryRun),
    };
  }
}

/**
 * Opens a gate for one request and explains what it decides.
 * @throws ConfigError if a file that the configuration names is invalid.
 */
export function explainAlone(
  options: ExplainerAloneOptions,
  dryRun: DryRunRequest,
): Promise<Explanation> {
  return withOwnGate(options, (gate) => explain(options, gate, dryRun));
}

interface ReadRequest extends ReadHead {
  readonly request: GateRequest;
}

/** @throws GateError for a request that can be read in more than one way. */
async function readRequest(
  configuration: Configuration,
  dryRun: DryRunRequest,
): Promise<ReadRequest> {
  const head = await readHead(dryRun, configuration.server.limits.headerBytes);
  const intake = createIntake(intakeOptionsOf(configuration));
  return { ...head, request: intake(head.message, 1) };
}

function explained(
  options: TokenSettings,
  dryRun: DryRunRequest,
  read: ReadRequest,
  decision: Decision,
): Explanation {
  const { configuration } = options;
  const { request, upgrade } = read;
  const { endpoint, route, identity, action } = decision;
  const refusal = refusalIn(decision, read);
  const { method, host, path, matchPath, client } = request;
  const { peer, peerTrusted, secure } = request.connection;
  const routes = routesOf(configuration);
  return {
    verdict: {
      ...(refusal === undefined ? letThrough(action) : refused(refusal, dryRun, configuration)),
      route: (endpoint ?? route)?.name ?? "none",
      wouldDeny: decision.auth === "would_deny" ? decision.reason : undefined,
    },
    request: {
      method,
      host,
      path,
      matchPath,
      client,
      peer,
      peerTrusted,
      secure,
      protocol: upgrade ? "websocket" : "http",
    },
    routes: explainRoutes(routes, decision.routed ? request : undefined),
    token: explainToken(decision, options),
    requirements: explainRequirements(route?.require ?? {}, identity),
    backend: action instanceof Permit ? explainBackend(configuration, action, upgrade) : undefined,
    notes: [
      ...connectionNotes(configuration, dryRun),
      ...droppedNotes(read),
      ...overlapNotes(routes, request, decision.routed ? route : undefined),
      ...decisionNotes(decision, refusal),
    ],
  };
}

/** Returns the refusal of a request, by the decision or by the endpoint; undefined if it is not refused. */
function refusalIn({ action }: Decision, { request, message }: ReadRequest): GateError | undefined {
  if (action instanceof GateError) return action;
  if (action instanceof Permit) return undefined;
  try {
    action.checkHead?.(request, message);
    return undefined;
  } catch (error) {
    if (error instanceof GateError) return error;
    throw error;
  }
}

type Conclusion = Omit<ExplainedVerdict, "route" | "wouldDeny">;

function letThrough(action: Decision["action"]): Conclusion {
  const outcome = action instanceof Permit ? "forwarded" : "answered";
  return { outcome, status: undefined, reason: undefined, detail: undefined };
}

function refused(error: GateError, dryRun: DryRunRequest, { server }: Configuration): Conclusion {
  const { status } = errorRow(error.code);
  const detail = refusalDetail(error, dryRun, server.limits);
  return { outcome: "refused", status, reason: error.reason ?? error.code, detail };
}

/** Returns notes on conditions that prevent a request from arriving at all. */
function connectionNotes({ server: { tls } }: Configuration, { secure }: DryRunRequest): string[] {
  if (tls.mode === "off") return [];
  if (!secure) return ["the listener speaks TLS: a request over plain http gets no answer"];
  return tls.clientCertificates?.mode === "required"
    ? [
        "the listener refuses connections without a client certificate, so the client gets no answer",
      ]
    : [];
}

/** Returns notes on header fields that the intake drops. */
function droppedNotes({ request, message }: ReadRequest): string[] {
  if (request.rawHeaders === message.rawHeaders) return [];
  const names = message.rawHeaders.filter((text, i) => i % 2 === 0 && text.includes("_"));
  return [`server.underscoreHeaders drops ${names.join(", ")}`];
}

/** Returns notes on what the explanation does not cover. */
function decisionNotes({ route, action }: Decision, refusal: GateError | undefined): string[] {
  const notes: string[] = [];
  if (route?.authorize !== undefined)
    notes.push(`${route.authorize} was asked, as for a real request`);
  if (route?.rateLimit !== undefined) notes.push("the rate limit is not counted here");
  if (route?.concurrency !== undefined) notes.push("requests in flight are not counted here");
  if (route?.mode === "monitor") notes.push("the route is in monitor mode, which refuses nobody");
  if (refusal === undefined && "checkHead" in action) {
    notes.push(
      "the result depends on the name and password in the body, which are not checked here",
    );
  }
  return notes;
}

import type { Configuration } from "../../config/configuration.ts";
import type { Gate } from "../../server/request/gate.ts";
import { decide, type Decision } from "../../server/request/decide.ts";
import { errorRow, GateError } from "../../core/request/errors.ts";
import type {
  DryRunRequest,
  ExplainedBackend,
  ExplainedRoute,
  ExplainedVerdict,
  Explanation,
} from "../../core/explanation.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import { newTrace } from "../../core/request/token-verifier.ts";
import { Permit } from "../../core/request/permit.ts";
import { explainRequirements, isWeaker } from "../../policy/authorize.ts";
import { createIntake } from "../../server/request/intake.ts";
import { type ReadHead, readHead } from "../../server/admin/explain-page.ts";
import { forwardingOf, intakeOptionsOf, ownPathsOf, routesOf } from "../gate/from-configuration.ts";
import { type ExplainerAloneOptions, withOwnGate } from "./dry-run-gate.ts";
import { explainToken, type TokenSettings } from "./explained-token.ts";
import { maskText } from "../../observe/log/redaction.ts";
import { DEFAULT_RETRY } from "../../upstream/http/repetition.ts";
import { createOutgoingHeaders } from "../../upstream/headers/outgoing-headers.ts";
import { forwardedQuery, rewritePath } from "../../upstream/headers/rewrite.ts";
import { pathWords, type Route } from "../../core/route/route.ts";
import { bySpecificity, createRouteTable } from "../../policy/route-table.ts";
import { fieldPairs } from "../../lib/http/header-values.ts";

/**
 * Returns details on why a head was refused, if the reason alone does not say it. Never includes values of the head.
 */
function refusalDetail(
  error: GateError,
  { head }: DryRunRequest,
  { headerBytes }: Configuration["server"]["limits"],
): string | undefined {
  if (error.exceeded !== undefined) return error.exceeded;
  const [start = "", ...rest] = head.split("\r\n");
  const names = rest.map((line) => line.split(":", 1)[0]?.toLowerCase() ?? "").filter(Boolean);
  const count = (name: string): number => names.filter((each) => each === name).length;
  const target = start.split(" ")[1] ?? "";
  switch (error.reason) {
    case "header_too_large":
      return `${head.length} bytes in the head, and server.limits.headerBytes is ${headerBytes}`;
    case "underscore_header":
      return `${names.filter((name) => name.includes("_")).join(", ")}: server.underscoreHeaders is reject`;
    case "ambiguous_path":
      return pathOfTarget(target);
    case "ambiguous_target":
      return target.includes("#") ? "a fragment, #" : "it names another host";
    case "ambiguous_host":
      return count("host") > 1
        ? `${count("host")} Host fields`
        : "a Host that is not a host name, with or without a port";
    case "ambiguous_length":
      return count("content-length") > 1
        ? `${count("content-length")} Content-Length fields`
        : "Content-Length is not a number of bytes";
    case "ambiguous_framing": {
      const codings = count("transfer-encoding");
      if (codings > 1) return `${codings} Transfer-Encoding fields`;
      return count("content-length") > 0
        ? "both Transfer-Encoding and Content-Length"
        : "a transfer coding other than chunked";
    }
    default:
      return parserWords(error.cause);
  }
}

/** Returns the message of Node's parser, which has a fixed one for each error. */
function parserWords(cause: unknown): string | undefined {
  if (typeof cause !== "object" || cause === null || !("reason" in cause)) return undefined;
  return typeof cause.reason === "string" ? cause.reason : undefined;
}

const PATH_ERRORS: readonly (readonly [RegExp, string])[] = [
  [/%(?![0-9a-f]{2})/i, "a % without two hex digits"],
  [/%(?:25|%32%35)[0-9a-f%]{2}/i, "a doubly encoded character"],
  [/\/(?:\.|%2e){1,2}(?:\/|$)/i, "a dot segment, . or .."],
  [/\/\//, "an empty segment, //"],
  [/;|%3b/i, "a semicolon"],
  [/\\/, "a backslash"],
  [/%(?:2f|5c)/i, "an encoded slash or backslash"],
  [/%(?:3f|23)/i, "an encoded ? or #"],
  [/%(?:[01][0-9a-f]|7f)/i, "an encoded control character"],
  [/[^A-Za-z0-9\-._~!$&'()*+,=:@/%]/, "a character that must be encoded"],
];

function pathOfTarget(target: string): string {
  const path = target.replace(/[?#].*$/s, "");
  return PATH_ERRORS.find(([pattern]) => pattern.test(path))?.[1] ?? "bytes that are not UTF-8";
}

/** Headers that are written anew for the connection to the backend, with the same meaning. */
const FRAMING = new Set(["host", "content-length", "transfer-encoding"]);
/** Headers that are also sent to the backend in the request that opens a WebSocket. */
const SWITCHING = new Set(["connection", "upgrade"]);

/** Explains what would be sent to the backend, and to which targets. */
function explainBackend(
  configuration: Configuration,
  permit: Permit,
  upgrade: boolean,
): ExplainedBackend | undefined {
  const { request, route } = permit;
  const upstream = configuration.upstreams[route.upstream];
  if (upstream === undefined) return undefined;
  const { targets, protocol, connections, queue, timeouts } = upstream;
  const { bodyBytes, rateLimit, mirror } = route;
  return {
    upstream: route.upstream,
    targets,
    protocol,
    path: rewritePath(route, request),
    queryBytes: forwardedQuery(permit).length,
    headers: headersOf(configuration, permit, upgrade),
    timeouts: { ...timeouts, ...route.timeouts, queue: queue.timeout },
    balance: targets.length > 1 ? upstream.balance : undefined,
    retry: route.retry ?? DEFAULT_RETRY,
    mirror: mirror && { upstream: mirror.upstream, percent: mirror.percent },
    limits: {
      bodyBytes: bodyBytes === Infinity ? undefined : bodyBytes,
      connections,
      queue: queue.length,
      rate: rateLimit && {
        by: rateLimit.by,
        requests: rateLimit.requests,
        withinMs: rateLimit.withinMs,
        burst: rateLimit.burst,
      },
    },
  };
}

function headersOf(
  configuration: Configuration,
  permit: Permit,
  upgrade: boolean,
): ExplainedBackend["headers"] {
  const { header } = configuration.tokens.assertion ?? {};
  const assertions = header === undefined ? undefined : { header, for: () => "a signed JWT" };
  const outgoing = createOutgoingHeaders(forwardingOf(configuration), assertions);
  const sent = fieldPairs(permit.request.rawHeaders);
  const added = fieldPairs(outgoing.headers(permit));
  const { requestHeaders, hostHeader } = permit.route;
  const kept: string[] = [];
  const removed: string[] = [];
  for (const [name, value] of sent) {
    const at = added.findIndex((pair) => pair[0] === name && pair[1] === value);
    const lower = name.toLowerCase();
    const again =
      (FRAMING.has(lower) && !(lower === "host" && hostHeader !== undefined)) ||
      (upgrade && SWITCHING.has(lower));
    if (at !== -1) added.splice(at, 1);
    (at !== -1 || again ? kept : removed).push(name);
  }
  if (hostHeader !== undefined) {
    added.push(["Host", hostHeader === "target" ? "that of the target" : hostHeader.fixed]);
  }
  return {
    added: added.map(([name, value]) => {
      // A fixed value may be a secret, such as an API key for the backend.
      const fixed = requestHeaders?.isFixed(name) === true;
      return [name, fixed ? "as configured" : maskText(value)] as const;
    }),
    removed,
    kept,
  };
}

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
  const isOwn = ownPathsOf(configuration)(matchPath);
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
    routes: explainRoutes(routes, decision.routed && !isOwn ? request : undefined),
    token: explainToken(decision, options),
    requirements: explainRequirements(route?.require ?? {}, identity),
    backend: action instanceof Permit ? explainBackend(configuration, action, upgrade) : undefined,
    notes: [
      ...connectionNotes(configuration, dryRun),
      ...droppedNotes(read),
      ...overlapNotes(routes, request, decision.routed ? route : undefined),
      ...decisionNotes(decision, refusal),
      ...(isOwn ? ["the path is below server.ownPath, and never forwarded"] : []),
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
  return { outcome: "refused", status, reason: error.reason, detail };
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
  if (route?.auth === "certificate")
    notes.push("a dry run has no client certificate, which this route needs");
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

/** Returns all routes in matching order, each with its result. The route table itself decides what matches. */
function explainRoutes(
  routes: readonly Route[],
  request: GateRequest | undefined,
): ExplainedRoute[] {
  let taken = false;
  return bySpecificity(routes).map((route) => {
    const fits = request !== undefined && !taken && matches(route, request);
    const misfits = request === undefined || taken || fits ? [] : mismatchesOf(route, request);
    const tried = request !== undefined && !taken;
    taken ||= fits;
    return {
      name: route.name,
      hosts: route.hosts,
      path: pathWords(route.path),
      methods: route.methods,
      result: fits ? "taken" : tried ? "does not fit" : "not tried",
      misfits,
    };
  });
}

function matches(route: Route, request: GateRequest): boolean {
  return createRouteTable([route])(request) !== undefined;
}

/** Returns notes on routes whose regular expression matches the request, although another route takes it. */
function overlapNotes(
  routes: readonly Route[],
  request: GateRequest,
  taker: Route | undefined,
): string[] {
  if (taker === undefined) return [];
  return routes
    .filter(({ name, path }) => name !== taker.name && "regex" in path)
    .filter((route) => matches(route, request))
    .map((route) => {
      const opens = isWeaker(taker, route)
        ? `, and may admit callers whom ${route.name} refuses`
        : "";
      return `the regex of the route ${route.name} matches, too: ${taker.name} comes before it${opens}`;
    });
}

/** Returns the conditions of a route that the request does not meet, each checked separately. */
function mismatchesOf(route: Route, request: GateRequest): ExplainedRoute["misfits"] {
  const { hosts, methods, path, headers, ...rest } = route;
  const everywhere: Route = { ...rest, path: { prefix: "/" } };
  const alone = {
    host: hosts === undefined ? everywhere : { ...everywhere, hosts },
    path: { ...rest, path },
    method: methods === undefined ? everywhere : { ...everywhere, methods },
    header: headers === undefined ? everywhere : { ...everywhere, headers },
  };
  const parts = ["host", "path", "method", "header"] as const;
  return parts.filter((part) => !matches(alone[part], request));
}

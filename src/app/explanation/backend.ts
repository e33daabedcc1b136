import type { Configuration } from "../../config/schema/configuration-schema.ts";
import type { ExplainedBackend } from "../../core/explanation.ts";
import type { Permit } from "../../core/request/permit.ts";
import { maskText } from "../../observe/log/redaction.ts";
import { DEFAULT_RETRY } from "../../upstream/http/repetition.ts";
import { createOutgoingHeaders } from "../../upstream/headers/outgoing-headers.ts";
import { rewritePath } from "../../upstream/headers/rewrite.ts";
import { forwardedQuery } from "../../upstream/headers/without-tokens.ts";
import { forwardingOf } from "../gate/from-configuration.ts";

/** Headers that are written anew for the connection to the backend, with the same meaning. */
const FRAMING = new Set(["host", "content-length", "transfer-encoding"]);
/** Headers that are also sent to the backend in the request that opens a WebSocket. */
const SWITCHING = new Set(["connection", "upgrade"]);

/** Explains what would be sent to the backend, and to which targets. */
export function explainBackend(
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
  const sent = pairsOf(permit.request.rawHeaders);
  const added = pairsOf(outgoing.headers(permit));
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

function pairsOf(list: readonly string[]): [name: string, value: string][] {
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < list.length; i += 2) pairs.push([list[i] ?? "", list[i + 1] ?? ""]);
  return pairs;
}

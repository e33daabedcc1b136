import type { Configuration } from "../../config/schema.ts";
import type { ExplainedBackend } from "../../core/explanation.ts";
import type { Permit } from "../../core/permit.ts";
import { maskText } from "../../observe/redaction.ts";
import { createOutgoingHeaders } from "../../upstream/outgoing-headers.ts";
import { rewritePath } from "../../upstream/rewrite.ts";
import { identityHeadersOf } from "../from-configuration.ts";

/** Written anew for the connection to the backend, and mean the same there. */
const FRAMING = new Set(["host", "content-length", "transfer-encoding"]);
/** A WebSocket is asked for in the same words. */
const SWITCHING = new Set(["connection", "upgrade"]);

/** What would be sent to the backend, and where. */
export function explainBackend(
  configuration: Configuration,
  permit: Permit,
  upgrade: boolean,
): ExplainedBackend | undefined {
  const { request, route } = permit;
  const upstream = configuration.upstreams[route.upstream];
  if (upstream === undefined) return undefined;
  const { targets, connections, queue, timeouts } = upstream;
  const bodyBytes = route.bodyBytes ?? configuration.server.limits.bodyBytes;
  const { rateLimit } = route;
  return {
    upstream: route.upstream,
    targets,
    path: rewritePath(route, request),
    queryBytes: request.query.length,
    headers: headersOf(configuration, permit, upgrade),
    timeouts: { ...timeouts, queue: queue.timeout },
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
  const outgoing = createOutgoingHeaders(identityHeadersOf(configuration));
  const sent = pairsOf(permit.request.rawHeaders);
  const added = pairsOf(outgoing.headers(permit));
  const kept: string[] = [];
  const removed: string[] = [];
  for (const [name, value] of sent) {
    const at = added.findIndex((pair) => pair[0] === name && pair[1] === value);
    const lower = name.toLowerCase();
    const again = FRAMING.has(lower) || (upgrade && SWITCHING.has(lower));
    if (at !== -1) added.splice(at, 1);
    (at !== -1 || again ? kept : removed).push(name);
  }
  return {
    added: added.map(([name, value]) => [name, maskText(value)] as const),
    removed,
    kept,
  };
}

function pairsOf(list: readonly string[]): [name: string, value: string][] {
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < list.length; i += 2) pairs.push([list[i] ?? "", list[i + 1] ?? ""]);
  return pairs;
}

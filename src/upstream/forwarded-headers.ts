import type { GateRequest } from "../core/gate-request.ts";

/** Believed from a trusted proxy, replaced for everybody else. */
export const FORWARDED_NAMES: ReadonlySet<string> = new Set([
  "x-forwarded-for",
  "x-forwarded-proto",
  "x-forwarded-host",
  "x-forwarded-port",
  "forwarded",
  "x-real-ip",
]);

interface Seen {
  readonly authority: string;
  readonly headers: readonly string[];
}

/** `X-Forwarded-*`, `X-Real-IP` and `Forwarded` (RFC 7239): what we saw, after what a trusted proxy says it saw. */
export class ForwardedHeaders {
  /** A connection stays with its host nearly always. */
  readonly #seen = new WeakMap<object, Seen>();

  /** @returns name and value alternating. */
  for(request: GateRequest): readonly string[] {
    if (request.peerTrusted) return afterProxy(request);
    const { connection, authority } = request;
    const before = this.#seen.get(connection);
    if (before?.authority === authority) return before.headers;
    const headers = asSeen(request);
    this.#seen.set(connection, { authority, headers });
    return headers;
  }
}

/** What this connection looks like from here. */
function sight({ peer, authority, secure }: GateRequest) {
  const scheme = secure ? "https" : "http";
  const port = /:(\d+)$/.exec(authority)?.[1] ?? (secure ? "443" : "80");
  const node = peer.includes(":") ? `"[${peer}]"` : peer;
  return { scheme, port, element: `for=${node};host="${authority}";proto=${scheme}` };
}

function asSeen(request: GateRequest): readonly string[] {
  const { peer, authority } = request;
  const { scheme, port, element } = sight(request);
  return [
    ...["X-Forwarded-For", peer, "X-Forwarded-Proto", scheme, "X-Forwarded-Host", authority],
    ...["X-Forwarded-Port", port, "X-Real-IP", peer, "Forwarded", element],
  ];
}

function afterProxy(request: GateRequest): readonly string[] {
  const { peer, authority } = request;
  const { scheme, port, element } = sight(request);
  const said = (name: string): string | undefined => valueOf(request.rawHeaders, name);
  return [
    ...["X-Forwarded-For", appended(said("x-forwarded-for"), peer)],
    ...["X-Forwarded-Proto", said("x-forwarded-proto") ?? scheme],
    ...["X-Forwarded-Host", said("x-forwarded-host") ?? authority],
    ...["X-Forwarded-Port", said("x-forwarded-port") ?? port],
    ...["X-Real-IP", request.client, "Forwarded", appended(said("forwarded"), element)],
  ];
}

function appended(list: string | undefined, element: string): string {
  return list === undefined || list === "" ? element : `${list}, ${element}`;
}

/** All fields of one name as one list (RFC 9110 §5.3). */
function valueOf(rawHeaders: readonly string[], wanted: string): string | undefined {
  let found: string | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const value = rawHeaders[i + 1] ?? "";
    if (rawHeaders[i]?.toLowerCase() !== wanted) continue;
    // An empty field adds no element (RFC 9110 §5.6.1.1).
    if (value !== "" || found === undefined) found = appended(found, value);
  }
  return found;
}

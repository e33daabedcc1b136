import type { GateRequest } from "../../core/request/gate-request.ts";

/** Headers that are extended if they come from a trusted proxy, and replaced otherwise. */
export const FORWARDED_NAMES: ReadonlySet<string> = new Set([
  "x-forwarded-for",
  "x-forwarded-proto",
  "x-forwarded-host",
  "x-forwarded-port",
  "forwarded",
  "x-real-ip",
]);

interface CachedHeaders {
  readonly authority: string;
  readonly headers: readonly string[];
}

/**
 * Creates `X-Forwarded-*`, `X-Real-IP` and `Forwarded` (RFC 7239) from the connection, appended to what a trusted
 * proxy sent.
 */
export class ForwardedHeaders {
  /** Cached per connection, on which nearly all requests have the same host. */
  readonly #cached = new WeakMap<object, CachedHeaders>();

  /** Returns names and values, alternating. */
  for(request: GateRequest): readonly string[] {
    if (request.connection.peerTrusted) return fromProxy(request);
    const { connection, authority } = request;
    const before = this.#cached.get(connection);
    if (before?.authority === authority) return before.headers;
    const headers = fromConnection(request);
    this.#cached.set(connection, { authority, headers });
    return headers;
  }
}

function describe({ connection: { peer, secure }, authority }: GateRequest) {
  const scheme = secure ? "https" : "http";
  const port = /:(\d+)$/.exec(authority)?.[1] ?? (secure ? "443" : "80");
  const node = peer.includes(":") ? `"[${peer}]"` : peer;
  return { scheme, port, element: `for=${node};host="${authority}";proto=${scheme}` };
}

function fromConnection(request: GateRequest): readonly string[] {
  const { authority } = request;
  const { peer } = request.connection;
  const { scheme, port, element } = describe(request);
  return [
    ...["X-Forwarded-For", peer, "X-Forwarded-Proto", scheme, "X-Forwarded-Host", authority],
    ...["X-Forwarded-Port", port, "X-Real-IP", peer, "Forwarded", element],
  ];
}

function fromProxy(request: GateRequest): readonly string[] {
  const { authority } = request;
  const { peer } = request.connection;
  const { scheme, port, element } = describe(request);
  const received = (name: string): string | undefined => valueOf(request.rawHeaders, name);
  return [
    ...["X-Forwarded-For", appended(received("x-forwarded-for"), peer)],
    ...["X-Forwarded-Proto", received("x-forwarded-proto") ?? scheme],
    ...["X-Forwarded-Host", received("x-forwarded-host") ?? authority],
    ...["X-Forwarded-Port", received("x-forwarded-port") ?? port],
    ...["X-Real-IP", request.client, "Forwarded", appended(received("forwarded"), element)],
  ];
}

function appended(list: string | undefined, element: string): string {
  return list === undefined || list === "" ? element : `${list}, ${element}`;
}

/** Joins all fields of a name into one list (RFC 9110 §5.3). */
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

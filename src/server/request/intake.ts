import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { GateError } from "../../core/request/errors.ts";
import type { IncomingRequest } from "../../core/request/http-message.ts";
import {
  applyUnderscorePolicy,
  type UnderscoreHeaders,
} from "../../core/request/underscore-headers.ts";
import {
  type ClientConnection,
  type GateRequest,
  mintGateRequest,
} from "../../core/request/gate-request.ts";
import { canonicalPath } from "../../lib/http/path/canonical-path.ts";
import { loosePath } from "../../lib/http/path/loose-path.ts";
import {
  clientNetwork,
  type Networks,
  parseAddress,
  unmapAddress,
} from "../../lib/http/networks.ts";
import { METHODS } from "../../lib/http/node-http.ts";
import { INSTANCE_PREFIX, instanceName } from "../../lib/instance-name.ts";
import { ambiguous, bodyLength, expectsContinue, Fields } from "./request-fields.ts";
import { speaksForItself } from "../listener/proxy-protocol/proxied-peer.ts";
import { clientSubjectOf } from "../tls/client-subject.ts";

/**
 * Turns a raw message into a request that has only one reading. `id` is unique among answers.
 * @throws GateError `bad_request`, `method_not_allowed` or `header_too_large` for what two parsers could read differently;
 * `underscore_header` for what the policy rejects.
 */
export type Intake = (message: IncomingRequest, id: number) => GateRequest;

/** A name without empty labels, which other parsers would strip or fill in. A final dot is allowed. */
const HOST = /^(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?$/;
const HIGHEST_PORT = 65_535;
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)(.*)$/i;
/** The versions of a request line. Node's parser also accepts `HTTP/2.0` there, which only streams have. */
const VERSIONS: ReadonlySet<string> = new Set(["1.0", "1.1"]);
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The prefix of generated request ids, so that those of two pods differ. */
const PROCESS_TAG = Math.floor(Math.random() * 2 ** 48).toString(36);

/** Computed for the first request of a connection. */
interface Connection extends ClientConnection {
  /** The peer's network. Computing it takes 5 µs for an IPv6 address. */
  readonly network: string;
  /** The last `Host` field found to be well formed. `authority` and `host` are made from it. */
  wellFormed: string | undefined;
  authority: string;
  host: string;
}

/** Called with a trusted proxy that does not name its client, and with its `X-Forwarded-For`. */
export type ClientUnknown = (proxy: string, list: string | undefined) => void;

export interface IntakeOptions {
  /** Networks whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies: Networks;
  readonly limits: {
    /** Maximum number of header fields in a request, at most `MAX_HEADER_FIELDS`. */
    readonly headers: number;
  };
  readonly underscoreHeaders?: UnderscoreHeaders;
  readonly unknown?: ClientUnknown;
  /** Whether some route takes paths that are not strict. */
  readonly loosePaths?: boolean;
}

/** Creates an intake, which caches what it knows about each connection. */
export function createIntake(options: IntakeOptions): Intake {
  const { limits, trustedProxies, loosePaths = false, underscoreHeaders = "allow" } = options;
  // Inlined, the policy would make V8 allocate the parts of each request: 200 bytes.
  const passesAll = underscoreHeaders === "allow";
  const connections = new WeakMap<Socket, Connection>();
  return (message, id) => {
    const { method = "", rawHeaders, httpVersion, socket, url = "" } = message;
    const fields = new Fields(rawHeaders, limits.headers);
    // On a stream of HTTP/2, frames say whether a body follows.
    const isStream = message.hasBody !== undefined;
    if (!isStream && !VERSIONS.has(httpVersion)) throw ambiguous("version");
    const connection =
      connections.get(socket) ?? readConnection(socket, trustedProxies, connections);
    const { peer, peerTrusted, wellFormed } = connection;
    if (fields.host === undefined || fields.host !== wellFormed) {
      readHost(fields.host, httpVersion, connection);
    }
    const { authority, host } = connection;
    const target = splitTarget(url, authority);
    const strict = canonicalPath(target.path);
    const loose = strict === undefined && loosePaths ? loosePath(target.path) : undefined;
    const spelled = strict ?? loose;
    if (spelled === undefined) throw ambiguous("path");
    const length = bodyLength(fields, message);
    // Its answer keeps the connection open, so the framing must be clear by now.
    if (fields.passed !== undefined && isLoop(fields.passed)) throw new GateError("loop_detected");
    if (!SERVED.has(method)) throw new GateError("method_not_allowed", { allow: SERVED_METHODS });
    const client = peerTrusted ? clientBehind(fields.forwardedFor, peer, options) : peer;
    return mintGateRequest({
      id,
      requestId: requestIdOf(fields.requestId, id),
      method,
      path: spelled.path,
      matchPath: spelled.matchPath,
      spelling: loose?.spelling ?? "strict",
      query: target.query,
      authority,
      host,
      authorization: fields.authorization,
      authorizations: fields.authorizations,
      rawHeaders: passesAll ? rawHeaders : applyUnderscorePolicy(rawHeaders, underscoreHeaders),
      bodyLength: length,
      connection,
      client,
      network: client === peer ? connection.network : clientNetwork(client),
      expectsContinue: fields.expect !== undefined && expectsContinue(fields.expect, httpVersion),
    });
  };
}

function readConnection(
  socket: Socket,
  trustedProxies: Networks,
  connections: WeakMap<Socket, Connection>,
): Connection {
  const peer = unmapAddress(socket.remoteAddress ?? "");
  const isProxy = !trustedProxies.empty && trustedProxies.has(peer) && !speaksForItself(socket);
  const connection: Connection = {
    peer,
    peerTrusted: isProxy,
    secure: socket instanceof TLSSocket,
    clientSubject: clientSubjectOf(socket),
    network: clientNetwork(peer),
    wellFormed: undefined,
    authority: "",
    host: "",
  };
  connections.set(socket, connection);
  return connection;
}

/** TRACE echoes headers that others added to the request. Node's parser also accepts methods of RTSP and ICE. */
const SERVED: ReadonlySet<string> = new Set(
  METHODS.filter((method) => method !== "TRACE" && method !== "SOURCE"),
);

/** The `Allow` field of a 405 for a method that no route can allow. */
export const SERVED_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/** The client's own id if it is well formed, otherwise a generated one. */
export function requestIdOf(sent: string | string[] | undefined, id: number): string {
  return typeof sent === "string" && REQUEST_ID.test(sent) ? sent : `${PROCESS_TAG}-${id}`;
}

/** Requires exactly one well-formed Host, except in HTTP/1.0 (RFC 9112 §3.2). */
function readHost(sent: string | undefined, httpVersion: string, connection: Connection): void {
  if (sent === undefined ? httpVersion !== "1.0" : !isHost(sent)) throw ambiguous("host");
  connection.wellFormed = sent;
  connection.authority = sent ?? "";
  // Without port and final dot.
  connection.host = connection.authority.replace(/:\d+$/, "").replace(/\.$/, "").toLowerCase();
}

function isHost(authority: string): boolean {
  const match = HOST.exec(authority);
  return match !== null && Number(match[1] ?? 0) <= HIGHEST_PORT;
}

/** Path and query of the request target. */
function splitTarget(url: string, authority: string): { path: string; query: string } {
  const target = url.startsWith("/") ? url : originForm(url, authority);
  if (target.includes("#")) throw ambiguous("target");
  const mark = target.indexOf("?");
  if (mark === -1) return { path: target, query: "" };
  return { path: target.slice(0, mark), query: target.slice(mark) };
}

/** The origin form of a target in absolute form, which must name this host (RFC 9112 §3.2.2). */
function originForm(url: string, authority: string): string {
  const [, host, rest = ""] = ABSOLUTE_FORM.exec(url) ?? [];
  if (host === undefined || host === "" || host.toLowerCase() !== authority.toLowerCase()) {
    throw ambiguous("target");
  }
  return rest.startsWith("/") ? rest : `/${rest}`;
}

/** Replicas do not know each other's names, so the total number of Sallyports that a request has passed is limited. */
const MOST_PASSED = 10;
const OWN_NAME = instanceName();

/**
 * Whether a request has already passed this process, or too many Sallyports.
 * @param passed all `CDN-Loop` fields of the request (RFC 8586), joined by commas.
 */
function isLoop(passed: string): boolean {
  if (passed.includes(OWN_NAME)) return true;
  let count = 0;
  for (let at = passed.indexOf(INSTANCE_PREFIX); at !== -1; count++) {
    at = passed.indexOf(INSTANCE_PREFIX, at + INSTANCE_PREFIX.length);
  }
  return count >= MOST_PASSED;
}

/** The addresses of `X-Forwarded-For` that are looked at. To parse 4,000 times `::1` takes 10 ms. */
const MOST_PROXIES = 64;

/**
 * Returns the rightmost address of `X-Forwarded-For` that is not a trusted proxy. If the list ends before, or holds
 * something else than an address, returns the last proxy.
 */
function clientBehind(
  list: string | undefined,
  peer: string,
  { trustedProxies, unknown }: IntakeOptions,
): string {
  let client = peer;
  for (const entry of (list ?? "").split(",").slice(-MOST_PROXIES).toReversed()) {
    const address = parseAddress(entry.trim());
    if (address === undefined) {
      unknown?.(client, list);
      break;
    }
    client = address;
    if (!trustedProxies.has(client)) break;
  }
  return client;
}

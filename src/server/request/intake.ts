import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { type Ambiguity, GateError } from "../../core/request/errors.ts";
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
import { canonicalPath, loosePath } from "../../lib/http/path/canonical-path.ts";
import {
  clientNetwork,
  type Networks,
  parseAddress,
  unmapAddress,
} from "../../lib/http/networks.ts";
import { rememberedByName } from "../../lib/text/by-name.ts";
import { METHODS } from "../../lib/http/node-http.ts";
import { INSTANCE_PREFIX, instanceName } from "../../lib/instance-name.ts";
import { clientCertificateOf } from "../tls/client-certificate.ts";
import { speaksForItself } from "../listener/proxy-protocol/proxied-peer.ts";

/** Maximum number of header fields. Node hides fields beyond its own limit, so this one is lower (CVE-2026-58044). */
export const MAX_HEADER_FIELDS = 256;

/** The error for what two parsers could read differently. */
export function ambiguous(what: Ambiguity): GateError {
  return new GateError("bad_request", { reason: `ambiguous_${what}` });
}

/** The header fields that intake reads. */
class Fields {
  host: string | undefined;
  /** The first one. */
  authorization: string | undefined;
  authorizations = 0;
  requestId: string | undefined;
  contentLength: string | undefined;
  transferEncoding: string | undefined;
  forwardedFor: string | undefined;
  expect: string | undefined;
  /** `CDN-Loop`: the proxies that the request has passed (RFC 8586). */
  passed: string | undefined;

  /**
   * @param rawHeaders a header section with name and value alternating.
   * @throws GateError `header_too_large` for more than `most` fields, `bad_request` for a repeated field that must be single.
   */
  constructor(rawHeaders: readonly string[], most: number) {
    if (rawHeaders.length > most * 2) {
      const exceeded = `${rawHeaders.length / 2} fields, and server.limits.headers is ${most}`;
      throw new GateError("header_too_large", { exceeded });
    }
    for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
      readField(this, rawHeaders[i] ?? "", rawHeaders[i + 1] ?? "");
    }
  }
}

/** Compares names only after their length, which rules out most fields. */
function readField(fields: Fields, name: string, value: string): void {
  switch (name.length) {
    case 4:
      if (name.toLowerCase() === "host") fields.host = single(fields.host, value, "host");
      break;
    case 6:
      if (name.toLowerCase() === "expect") fields.expect = joined(fields.expect, value);
      break;
    case 8:
      if (name.toLowerCase() === "cdn-loop") fields.passed = joined(fields.passed, value);
      break;
    case 12:
      if (name.toLowerCase() === "x-request-id") fields.requestId ??= value;
      break;
    case 13:
      if (name.toLowerCase() !== "authorization") break;
      fields.authorization ??= value;
      fields.authorizations += 1;
      break;
    case 14:
      if (name.toLowerCase() !== "content-length") break;
      fields.contentLength = single(fields.contentLength, value, "length");
      break;
    case 15:
      if (name.toLowerCase() !== "x-forwarded-for") break;
      fields.forwardedFor = joined(fields.forwardedFor, value);
      break;
    case 17:
      if (name.toLowerCase() !== "transfer-encoding") break;
      fields.transferEncoding = single(fields.transferEncoding, value, "framing");
      break;
    default:
  }
}

function single(before: string | undefined, value: string, what: Ambiguity): string {
  if (before !== undefined) throw ambiguous(what);
  return value;
}

function joined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before},${value}`;
}

/** The length of the body, -1 if unknown. `chunked` is the only transfer coding, and not in HTTP/1.0 (RFC 9112 §6.1). */
function bodyLength(
  fields: Fields,
  { httpVersion, hasBody }: Pick<IncomingRequest, "httpVersion" | "hasBody">,
): number {
  const { contentLength, transferEncoding } = fields;
  if (transferEncoding !== undefined) {
    if (contentLength !== undefined || httpVersion !== "1.1") throw ambiguous("framing");
    if (transferEncoding.toLowerCase() !== "chunked") throw ambiguous("framing");
    return -1;
  }
  if (contentLength === undefined) return hasBody === true ? -1 : 0;
  const length = Number(contentLength);
  if (!/^\d+$/.test(contentLength) || !Number.isSafeInteger(length)) throw ambiguous("length");
  // The stream has not ended with its head, and is malformed if a body follows (RFC 9113 §8.1.1): that is known at its end.
  return length === 0 && hasBody === true ? -1 : length;
}

/**
 * Whether the client waits for 100 (RFC 9110 §10.1.1), which HTTP/1.0 does not know. Node would search the whole field.
 * @throws GateError `expectation_failed` for any other expectation.
 */
function expectsContinue(expect: string, httpVersion: string): boolean {
  if (httpVersion === "1.0") return false;
  if (expect.toLowerCase() !== "100-continue") throw new GateError("expectation_failed");
  return true;
}

/**
 * Turns a raw message into a request that has only one reading. `id` is unique among answers.
 * @throws GateError `bad_request`, `method_not_allowed` or `header_too_large` for what two parsers could read differently;
 * `underscore_header` for what the policy rejects.
 */
export type Intake = (
  message: Pick<
    IncomingRequest,
    "method" | "url" | "rawHeaders" | "httpVersion" | "socket" | "hasBody"
  >,
  id: number,
) => GateRequest;

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
  /** Whether another proxy asks about the requests: then the certificate of the connection is that proxy's, not the client's. */
  readonly ofOthers?: boolean;
}

/** Creates an intake, which caches what it knows about each connection. */
export function createIntake(options: IntakeOptions): Intake {
  const { limits, trustedProxies, loosePaths = false, underscoreHeaders = "allow" } = options;
  // Inlined, the policy would make V8 allocate the parts of each request: 200 bytes.
  const passesAll = underscoreHeaders === "allow";
  const connections = new WeakMap<Socket, Connection>();
  // Behind a proxy, the same clients come again and again.
  const known = rememberedByName((list) => clientNamed(list, trustedProxies));
  return (message, id) => {
    const { method = "", rawHeaders, httpVersion, socket, url = "" } = message;
    const fields = new Fields(rawHeaders, limits.headers);
    // On a stream of HTTP/2, frames say whether a body follows.
    const isStream = message.hasBody !== undefined;
    if (!isStream && !VERSIONS.has(httpVersion)) throw ambiguous("version");
    const connection = connections.get(socket) ?? readConnection(socket, options, connections);
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
    const { forwardedFor } = fields;
    const client = peerTrusted
      ? (known(forwardedFor ?? "") ?? clientBehind(forwardedFor, peer, options))
      : peer;
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
  { trustedProxies, ofOthers = false }: IntakeOptions,
  connections: WeakMap<Socket, Connection>,
): Connection {
  const peer = unmapAddress(socket.remoteAddress ?? "");
  const secure = socket instanceof TLSSocket;
  const isProxy = !trustedProxies.empty && trustedProxies.has(peer) && !speaksForItself(socket);
  const connection: Connection = {
    peer,
    peerTrusted: isProxy,
    secure,
    clientCertificate:
      secure && socket.authorized && !ofOthers ? clientCertificateOf(socket) : undefined,
    network: clientNetwork(peer),
    wellFormed: undefined,
    authority: "",
    host: "",
  };
  connections.set(socket, connection);
  return connection;
}

/** TRACE echoes headers that others added; CONNECT opens a tunnel. Node's parser also accepts methods of RTSP and ICE. */
const SERVED: ReadonlySet<string> = new Set(
  METHODS.filter((method) => method !== "TRACE" && method !== "CONNECT" && method !== "SOURCE"),
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

/** Returns the only address of a list, unless it is that of a trusted proxy. Then it is the client, by any proxy. */
function clientNamed(list: string, trustedProxies: Networks): string | undefined {
  const address = parseAddress(list);
  return address === undefined || trustedProxies.has(address) ? undefined : address;
}

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

import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { GateError } from "../../core/request/errors.ts";
import type { IncomingRequest } from "../../core/request/http-message.ts";
import {
  applyUnderscorePolicy,
  type UnderscoreHeaders,
} from "../../core/request/underscore-headers.ts";
import { type GateRequest, mintGateRequest } from "../../core/request/gate-request.ts";
import { canonicalPath } from "../../lib/http/path/canonical-path.ts";
import { loosePath } from "../../lib/http/path/loose-path.ts";
import { clientNetwork } from "../../lib/http/client-network.ts";
import { type Networks, parseAddress, unmapAddress } from "../../lib/http/networks.ts";
import { METHODS } from "../../lib/http/node-http.ts";
import { type Fields, ambiguous, readFields } from "./request-fields.ts";
import { speaksForItself } from "../listener/proxy-protocol/proxied-peer.ts";
import { clientSubjectOf } from "../tls/client-subject.ts";
import { isLoop } from "./request-loop.ts";

/**
 * Makes a request that has only one reading from a raw message. `id` is unique among answers.
 * @throws GateError `bad_request`, `method_not_allowed` or `header_too_large` for what two parsers could read differently;
 * `underscore_header` for what the policy rejects.
 */
export type Intake = (message: IncomingRequest, id: number) => GateRequest;

/** A name without empty labels, which other parsers would strip or fill in. A final dot is allowed. */
const HOST = /^(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?$/;
const HIGHEST_PORT = 65_535;
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)(.*)$/i;
/** What a request line may say. Node's parser takes `HTTP/2.0` there, too, which only streams are. */
const VERSIONS: ReadonlySet<string> = new Set(["1.0", "1.1"]);
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The prefix of generated request ids, so that those of two pods differ. */
const PROCESS_TAG = Math.floor(Math.random() * 2 ** 48).toString(36);

/** What the requests of one connection have in common, computed for the first. */
interface Connection {
  readonly peer: string;
  /** The peer's network. Computing it takes 5 µs for an IPv6 address. */
  readonly network: string;
  readonly peerTrusted: boolean;
  readonly secure: boolean;
  readonly clientSubject: string | undefined;
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

/** Creates an intake, which caches its results for each connection. */
export function createIntake(options: IntakeOptions): Intake {
  const { limits, loosePaths = false, underscoreHeaders = "allow" } = options;
  // Inlined, the policy would make V8 allocate the parts of each request: 200 bytes.
  const passesAll = underscoreHeaders === "allow";
  const connections = new Connections(options.trustedProxies);
  return (message, id) => {
    const fields = readFields(message.rawHeaders, limits.headers);
    const method = message.method ?? "";
    // On a stream of HTTP/2, frames say whether a body follows.
    const isStream = message.hasBody !== undefined;
    if (!isStream && !VERSIONS.has(message.httpVersion)) throw ambiguous("version");
    if (fields.passed !== undefined && isLoop(fields.passed)) throw new GateError("loop_detected");
    const connection = connections.of(message.socket);
    readHost(fields.host, message.httpVersion, connection);
    const { authority, host, peer, peerTrusted, secure, clientSubject } = connection;
    const target = splitTarget(message.url ?? "", authority);
    const strict = canonicalPath(target.path);
    const loose = strict === undefined && loosePaths ? loosePath(target.path) : undefined;
    const spelled = strict ?? loose;
    if (spelled === undefined) throw ambiguous("path");
    const length = bodyLength(fields, message);
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
      rawHeaders: passesAll
        ? message.rawHeaders
        : applyUnderscorePolicy(message.rawHeaders, underscoreHeaders),
      bodyLength: length,
      connection,
      peer,
      peerTrusted,
      client,
      network: client === peer ? connection.network : clientNetwork(client),
      secure,
      clientSubject,
      expectsContinue: expectsContinue(fields.expect, message.httpVersion),
    });
  };
}

/** Caches the properties of each connection. */
class Connections {
  readonly #known = new WeakMap<Socket, Connection>();
  readonly #trustedProxies: Networks;

  constructor(trustedProxies: Networks) {
    this.#trustedProxies = trustedProxies;
  }

  of(socket: Socket): Connection {
    const known = this.#known.get(socket);
    if (known !== undefined) return known;
    const peer = unmapAddress(socket.remoteAddress ?? "");
    const connection: Connection = {
      peer,
      network: clientNetwork(peer),
      peerTrusted:
        !this.#trustedProxies.empty && this.#trustedProxies.has(peer) && !speaksForItself(socket),
      secure: socket instanceof TLSSocket,
      clientSubject: clientSubjectOf(socket),
      wellFormed: undefined,
      authority: "",
      host: "",
    };
    this.#known.set(socket, connection);
    return connection;
  }
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
  if (sent !== undefined && sent === connection.wellFormed) return;
  if (sent === undefined ? httpVersion !== "1.0" : !isHost(sent)) throw ambiguous("host");
  connection.wellFormed = sent;
  connection.authority = sent ?? "";
  connection.host = hostName(connection.authority);
}

function isHost(authority: string): boolean {
  const match = HOST.exec(authority);
  return match !== null && Number(match[1] ?? 0) <= HIGHEST_PORT;
}

/** The host without port and final dot, in lower case. */
function hostName(authority: string): string {
  return authority.replace(/:\d+$/, "").replace(/\.$/, "").toLowerCase();
}

/** Path and query of the request target: origin form, or absolute form that names this host (RFC 9112 §3.2.2). */
function splitTarget(url: string, authority: string): { path: string; query: string } {
  let target = url;
  if (!url.startsWith("/")) {
    const [, host, rest = ""] = ABSOLUTE_FORM.exec(url) ?? [];
    if (host === undefined || host === "" || host.toLowerCase() !== authority.toLowerCase()) {
      throw ambiguous("target");
    }
    target = rest.startsWith("/") ? rest : `/${rest}`;
  }
  if (target.includes("#")) throw ambiguous("target");
  const mark = target.indexOf("?");
  if (mark === -1) return { path: target, query: "" };
  return { path: target.slice(0, mark), query: target.slice(mark) };
}

/** The length of the body, -1 if unknown. `chunked` is the only transfer coding, and not in HTTP/1.0 (RFC 9112 §6.1). */
function bodyLength(fields: Fields, { httpVersion, hasBody }: IncomingRequest): number {
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
function expectsContinue(expect: string | undefined, httpVersion: string): boolean {
  if (expect === undefined || httpVersion === "1.0") return false;
  if (expect.toLowerCase() !== "100-continue") throw new GateError("expectation_failed");
  return true;
}

/** The rightmost address of `X-Forwarded-For` that is not a trusted proxy; the last proxy's if the list ends before. */
function clientBehind(
  list: string | undefined,
  peer: string,
  { trustedProxies, unknown }: IntakeOptions,
): string {
  let client = peer;
  for (const entry of (list ?? "").split(",").toReversed()) {
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

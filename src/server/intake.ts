import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { GateError } from "../core/errors.ts";
import { type GateRequest, mintGateRequest } from "../core/gate-request.ts";
import { canonicalPath } from "../lib/canonical-path.ts";
import { networkOf } from "../lib/client-network.ts";
import { type Networks, plainAddress, writtenAddress } from "../lib/networks.ts";
import { METHODS } from "../lib/node-http.ts";
import { ambiguous, type Fields, MAX_HEADER_FIELDS, readFields } from "./request-fields.ts";
import { clientSubjectOf } from "./tls-client-subject.ts";

/**
 * Turns a raw message into a request that can be read in one way only. `id` is a number that no other answer has.
 * @throws GateError `bad_request`, `method_not_allowed` or `header_too_large` for what two readers could read differently.
 */
export type Intake = (message: IncomingMessage, id: number) => GateRequest;

/** A name without empty labels, which others would cut off or fill in; a final dot is one way to write it. */
const HOST = /^(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?$/;
const HIGHEST_PORT = 65_535;
const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)(.*)$/i;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** Begins the request ids that are made here, so that those of two pods differ. */
const PROCESS_TAG = Math.floor(Math.random() * 2 ** 48).toString(36);

/** What the requests of one connection have in common: worked out for the first of them. */
interface Connection {
  readonly peer: string;
  /** Of the peer: to work it out takes 5 µs for an address of IPv6. */
  readonly network: string;
  readonly peerTrusted: boolean;
  readonly secure: boolean;
  readonly clientSubject: string | undefined;
  /** The last `Host` field that was found to be well formed; what it says stands below. */
  wellFormed: string | undefined;
  authority: string;
  host: string;
}

/** Told of the trusted proxy that does not say for whom it asks, and of its `X-Forwarded-For`. */
export type ClientUnknown = (proxy: string, list: string | undefined) => void;

/**
 * @param trustedProxies networks whose `X-Forwarded-For` is believed.
 * @param mostFields the most header fields of a request, `MAX_HEADER_FIELDS` or less.
 */
export function createIntake(
  trustedProxies: Networks,
  mostFields = MAX_HEADER_FIELDS,
  unknown: ClientUnknown = () => undefined,
): Intake {
  const connections = new WeakMap<Socket, Connection>();

  function connectionOf(socket: Socket): Connection {
    const known = connections.get(socket);
    if (known !== undefined) return known;
    const peer = plainAddress(socket.remoteAddress ?? "");
    const connection: Connection = {
      peer,
      network: networkOf(peer),
      peerTrusted: !trustedProxies.empty && trustedProxies.has(peer),
      secure: socket instanceof TLSSocket,
      clientSubject: clientSubjectOf(socket),
      wellFormed: undefined,
      authority: "",
      host: "",
    };
    connections.set(socket, connection);
    return connection;
  }

  return (message, id) => {
    const fields = readFields(message.rawHeaders, mostFields);
    const method = message.method ?? "";
    if (message.httpVersion !== "1.1" && message.httpVersion !== "1.0") throw ambiguous("version");
    const connection = connectionOf(message.socket);
    readHost(fields.host, message.httpVersion, connection);
    const { authority, host, peer, peerTrusted, secure, clientSubject } = connection;
    const target = splitTarget(message.url ?? "", authority);
    const spelled = canonicalPath(target.path);
    if (spelled === undefined) throw ambiguous("path");
    const length = bodyLength(fields, message.httpVersion);
    if (!SERVED.has(method)) throw new GateError("method_not_allowed", { allow: ALLOWED });
    const client = peerTrusted
      ? clientBehind(fields.forwardedFor, peer, trustedProxies, unknown)
      : peer;
    return mintGateRequest({
      id,
      requestId: requestIdOf(fields.requestId, id),
      method,
      path: spelled.path,
      matchPath: spelled.matchPath,
      query: target.query,
      authority,
      host,
      authorization: fields.authorization,
      authorizations: fields.authorizations,
      rawHeaders: message.rawHeaders,
      bodyLength: length,
      connection,
      peer,
      peerTrusted,
      client,
      network: client === peer ? connection.network : networkOf(client),
      secure,
      clientSubject,
      expectsContinue: expectsContinue(fields.expect, message.httpVersion),
    });
  };
}

/** TRACE gives back what others put into a request; Node's parser reads those of RTSP and ICE, too, as HTTP. */
const SERVED: ReadonlySet<string> = new Set(
  METHODS.filter((method) => method !== "TRACE" && method !== "SOURCE"),
);

/** Told with 405 for a method that no route can allow. */
const ALLOWED = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/** The id that the client chose when it is harmless, else one of ours. */
export function requestIdOf(sent: string | string[] | undefined, id: number): string {
  return typeof sent === "string" && REQUEST_ID.test(sent) ? sent : `${PROCESS_TAG}-${id}`;
}

/** Exactly one well-formed Host; HTTP/1.0 may do without (RFC 9112 §3.2). */
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

/** Without port and final dot, in lower case. */
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

/** How the body is framed; the only transfer coding is a single `chunked`, and never in HTTP/1.0 (RFC 9112 §6.1). */
function bodyLength(fields: Fields, httpVersion: string): number {
  const { contentLength, transferEncoding } = fields;
  if (transferEncoding !== undefined) {
    if (contentLength !== undefined || httpVersion !== "1.1") throw ambiguous("framing");
    if (transferEncoding.toLowerCase() !== "chunked") throw ambiguous("framing");
    return -1;
  }
  if (contentLength === undefined) return 0;
  const length = Number(contentLength);
  if (!/^\d+$/.test(contentLength) || !Number.isSafeInteger(length)) throw ambiguous("length");
  return length;
}

/**
 * Whether the client waits for 100 (RFC 9110 §10.1.1); in HTTP/1.0 nobody does. Node looks for the word anywhere in the field.
 * @throws GateError `expectation_failed` for anything else that is expected.
 */
function expectsContinue(expect: string | undefined, httpVersion: string): boolean {
  if (expect === undefined || httpVersion !== "1.1") return false;
  if (expect.toLowerCase() !== "100-continue") throw new GateError("expectation_failed");
  return true;
}

/** The rightmost address of `X-Forwarded-For` that is no trusted proxy's; the last proxy's where that names nobody. */
function clientBehind(
  list: string | undefined,
  peer: string,
  trusted: Networks,
  unknown: ClientUnknown,
): string {
  let client = peer;
  for (const entry of (list ?? "").split(",").toReversed()) {
    const address = writtenAddress(entry.trim());
    if (address === undefined) {
      unknown(client, list);
      break;
    }
    client = address;
    if (!trusted.has(client)) break;
  }
  return client;
}

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { TunnelStream } from "../../core/request/forwarder.ts";
import type { Permit } from "../../core/request/permit.ts";
import { clientFields } from "../headers/incoming-headers.ts";
import { answeredProtocol } from "../headers/without-tokens.ts";
import type { TargetOrigin } from "../pool/target-origin.ts";
import type { UpgradeContext } from "../http/permitted-request.ts";

/** A backend that has switched protocols. */
export interface Switched {
  readonly origin: TargetOrigin;
  readonly message: IncomingMessage;
  readonly socket: Socket;
  /** Data that arrived with the 101. */
  readonly head: NonSharedBuffer;
  /** http-proxy-3's handler of a 101: it writes the head to the client, and pipes both sockets into each other. */
  readonly switchOver: (message: IncomingMessage, backend: Socket, head: NonSharedBuffer) => void;
}

/** How long a stream stays open after the backend has closed, if the client does not end it, in milliseconds. */
const AFTER_BACKEND_MS = 1_000;
/** Fields that a 101 must not have: it has no body and no trailers (RFC 9110 §8.6). */
const NOT_PASSED = new Set(["content-length", "trailer"]);
const PROTOCOL = "sec-websocket-protocol";
/** HTTP/2 has its own handshake (RFC 8441 §5). */
const ACCEPT = "sec-websocket-accept";

/**
 * Tells the client that the WebSocket is open, and pipes both ends into each other.
 *
 * @returns the status that the client gets.
 */
export function switchProtocols(
  { permit, request, response, stream }: UpgradeContext,
  { message, socket: backend, head, switchOver, origin }: Switched,
): number {
  const fields = switchingFields(message, permit, origin);
  if (stream !== undefined) return openStream(stream, backend, head, fields);
  const { socket } = request;
  response.detachSocket?.(socket);
  message.headers = { ...byName(fields), connection: "Upgrade", upgrade: "websocket" };
  // http-proxy-3 writes the head as a string in which each character is a byte.
  socket.setDefaultEncoding("latin1");
  switchOver(message, backend, head);
  return 101;
}

function openStream(
  stream: TunnelStream,
  backend: Socket,
  head: NonSharedBuffer,
  fields: readonly string[],
): number {
  const { duplex } = stream;
  const status = stream.open(fields.filter((_, i) => fields[i - (i % 2)] !== ACCEPT));
  backend.setTimeout(0);
  backend.setNoDelay(true).setKeepAlive(true);
  if (head.length > 0) backend.unshift(head);
  backend.once("close", () => {
    duplex.end();
    if (!duplex.destroyed) setTimeout(() => stream.abort(), AFTER_BACKEND_MS).unref();
  });
  backend.pipe(duplex).pipe(backend);
  return status;
}

/** Returns the fields for the client: those of any response, except those about a body. */
function switchingFields(
  { headers }: IncomingMessage,
  permit: Permit,
  origin: TargetOrigin,
): string[] {
  const fields = clientFields(headers, permit, 101, origin);
  const protocol = headers[PROTOCOL] === undefined ? answeredProtocol(permit) : undefined;
  if (protocol !== undefined) fields.push(PROTOCOL, protocol);
  return fields.filter((_, i) => !NOT_PASSED.has(fields[i - (i % 2)] ?? ""));
}

function byName(fields: readonly string[]): Record<string, string[]> {
  const named: Record<string, string[]> = Object.create(null);
  for (let i = 0; i + 1 < fields.length; i += 2) {
    (named[fields[i] ?? ""] ??= []).push(fields[i + 1] ?? "");
  }
  return named;
}

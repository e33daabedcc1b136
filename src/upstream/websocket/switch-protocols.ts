import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TunnelStream, UpgradeRequest } from "../../core/request/http-message.ts";
import type { Permit } from "../../core/request/permit.ts";
import { clientFields, mayEndWithTrailers } from "../headers/incoming-headers.ts";
import { answeredProtocol } from "../headers/rewrite.ts";
import type { TargetOrigin } from "../pool/target-origin.ts";
import type { UpgradeContext } from "../http/dispatch.ts";
import type { Slot } from "../pool/slot.ts";
import type { BufferedBytes } from "../../server/listener/connection-ledger.ts";
import type { BufferHolder, Transfer } from "../../core/request/transfer.ts";

/** A backend that has switched protocols. */
export interface Switched {
  readonly origin: TargetOrigin;
  readonly message: IncomingMessage;
  readonly socket: Socket;
  /** Data that arrived with the 101. */
  readonly head: NonSharedBuffer;
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
  context: UpgradeContext,
  { message, socket: backend, head, origin }: Switched,
): number {
  const fields = switchingFields(message, context.permit, origin);
  backend.setTimeout(0);
  backend.setNoDelay(true).setKeepAlive(true);
  if (head.length > 0) backend.unshift(head);
  const { stream } = context;
  return stream === undefined
    ? openConnection(context, backend, fields)
    : openStream(stream, backend, fields);
}

function openConnection(
  { request: { socket }, response }: UpgradeContext,
  backend: Socket,
  fields: readonly string[],
): number {
  response.sendDate = false;
  response.writeHead(101, [...fields, "Connection", "Upgrade", "Upgrade", "websocket"]);
  response.flushHeaders();
  response.detachSocket?.(socket);
  socket.setTimeout(0);
  socket.setKeepAlive(true);
  backend.once("close", () => socket.end());
  backend.pipe(socket).pipe(backend);
  return 101;
}

function openStream(stream: TunnelStream, backend: Socket, fields: readonly string[]): number {
  const { duplex } = stream;
  const status = stream.open(fields.filter((_, i) => fields[i - (i % 2)] !== ACCEPT));
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

/**
 * Forwards the response of a backend that refuses the upgrade. Resolves with its status when the client has received
 * it or is gone. Closes both connections if no byte of the body moves in either direction for `timeouts.idle`.
 *
 * @param slot released as soon as the response has arrived.
 * @param backendIdle called if the backend stopped sending.
 */
export function forwardRefusal(
  context: UpgradeContext,
  message: IncomingMessage,
  slot: Slot,
  backendIdle: () => void,
): Promise<number> {
  const { response, permit, transfer, upstream } = context;
  const { statusCode: status = 502, statusMessage = "", headers } = message;
  const { promise, resolve } = Promise.withResolvers<number>();
  const end = (): void => void response.destroy();
  const idle = setTimeout(() => {
    transfer.abortReason = response.writableNeedDrain ? "slow_client" : "idle_timeout";
    if (!response.writableNeedDrain) backendIdle();
    end();
  }, permit.route.timeouts?.idle ?? upstream.options.timeouts.idle);
  if (!mayEndWithTrailers(response, status)) delete headers["trailer"];
  response.writeHead(status, statusMessage, [
    ...clientFields(headers, permit, status, slot.target?.origin, transfer.cors?.backend),
    ...["Connection", "close"],
  ]);
  message.on("data", (chunk: Buffer) => {
    if (!response.write(chunk)) message.pause();
    transfer.bytesOut += chunk.length;
    idle.refresh();
    if (response.writableNeedDrain) slot.readStalled(transfer.bytesOut);
  });
  message.on("error", end).on("aborted", end);
  message.on("end", () => {
    slot.release();
    response.end();
  });
  response.on("drain", () => {
    slot.readResumed();
    message.resume();
  });
  response.once("close", () => {
    clearTimeout(idle);
    message.destroy();
    resolve(status);
  });
  return promise;
}

/** The client's end of a WebSocket: its connection, or its HTTP/2 stream. */
export interface ClientEnd {
  /** The bytes of both directions. */
  readonly duplex: Duplex;
  /** The connection, which other streams may share. */
  readonly connection: Socket;
  /** Ends it at once. */
  abort(): void;
  /** Counts what is buffered for it. */
  holds(holder: BufferHolder): void;
}

export function clientEndOf(
  { request, stream }: Pick<UpgradeRequest, "request" | "stream">,
  transfer: Transfer,
  buffered: BufferedBytes,
): ClientEnd {
  const { socket } = request;
  if (stream !== undefined) {
    return {
      duplex: stream.duplex,
      connection: socket,
      abort: () => stream.abort(),
      // The connection counts what its streams hold.
      holds: (holder) => void (transfer.holder = holder),
    };
  }
  return {
    duplex: socket,
    connection: socket,
    abort: () => void socket.destroy(),
    holds: (holder) => buffered.track(socket, holder),
  };
}

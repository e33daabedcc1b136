import { hash } from "node:crypto";
import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { incomingHeaders } from "./incoming-headers.ts";
import { InvalidAnswer, isPassable } from "./relay.ts";

/** A backend's word on the handshake: with a socket when it switched protocols. */
interface HandshakeAnswer {
  readonly message: IncomingMessage;
  readonly socket: Socket | undefined;
  /** What the backend sent behind its 101 already. */
  readonly head: NonSharedBuffer;
}

/** What the key is joined with before it is hashed (RFC 6455 §1.3). */
const ACCEPTING = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/**
 * Waits for the answer to a handshake that was sent.
 *
 * @param client leaving, it ends the handshake.
 * @param limitMs how long the backend may take.
 * @throws what `failureReason` knows: an error of the connection, the time-out, or an answer that cannot be passed on.
 */
export function handshakeAnswer(
  handshake: ClientRequest,
  client: Socket,
  limitMs: number,
): Promise<HandshakeAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<HandshakeAnswer>();
  const timer = setTimeout(() => {
    const connecting = handshake.socket?.connecting ?? true;
    handshake.destroy(new HandshakeTimeout(connecting));
  }, limitMs);
  const onClientGone = (): void => {
    handshake.destroy(new HandshakeAborted());
  };
  client.once("close", onClientGone);
  handshake
    .once("upgrade", (message, socket, head) => {
      if (isSwitch(message, keyOf(handshake))) resolve({ message, socket, head });
      else {
        socket.destroy();
        reject(new InvalidAnswer());
      }
    })
    .once("response", (message) => {
      if (isRefusal(message)) resolve({ message, socket: undefined, head: Buffer.alloc(0) });
      else handshake.destroy(new InvalidAnswer());
    })
    .on("error", reject);
  return promise.finally(() => {
    clearTimeout(timer);
    client.off("close", onClientGone);
  });
}

/** The header section of the 101 for the client: that of any answer, and the switch itself. */
export function switchHeaders(
  { headers }: IncomingMessage,
  requestId: string,
): Record<string, string[]> {
  const passed: Record<string, string[]> = Object.create(null);
  const fields = incomingHeaders(headers, requestId, 101);
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? "";
    // It has no body to be told the length or the trailers of (RFC 9110 §8.6).
    if (name === "content-length" || name === "trailer") continue;
    (passed[name] ??= []).push(fields[i + 1] ?? "");
  }
  return { ...passed, connection: ["Upgrade"], upgrade: ["websocket"] };
}

/** RFC 6455 §4.1: to WebSocket and nothing else, in answer to this key. */
function isSwitch({ headers }: IncomingMessage, key: string): boolean {
  return (
    headers.upgrade?.toLowerCase() === "websocket" &&
    headers["sec-websocket-accept"] === hash("sha1", key + ACCEPTING, "base64")
  );
}

/** A 101 that names no protocol comes as an ordinary answer, too. */
function isRefusal({ statusCode = 0, statusMessage = "", headers }: IncomingMessage): boolean {
  return statusCode >= 200 && isPassable(statusCode, statusMessage, headers);
}

function keyOf(handshake: ClientRequest): string {
  return String(handshake.getHeader("sec-websocket-key") ?? "");
}

/** The backend did not answer the handshake in time. */
class HandshakeTimeout extends Error {
  readonly code: string;

  constructor(connecting: boolean) {
    super("the backend did not answer the handshake in time");
    this.name = "HandshakeTimeout";
    this.code = connecting ? "UND_ERR_CONNECT_TIMEOUT" : "UND_ERR_HEADERS_TIMEOUT";
  }
}

/** The client left during the handshake. */
class HandshakeAborted extends Error {
  readonly code = "UND_ERR_ABORTED";

  constructor() {
    super("the client left during the handshake");
    this.name = "HandshakeAborted";
  }
}

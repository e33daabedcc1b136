import { hash } from "node:crypto";
import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { HandshakeClient } from "./handshake-client.ts";
import { isPassable } from "../headers/incoming-headers.ts";
import { BackendFault } from "../http/faults.ts";

/** The response to a handshake, with a socket if the backend switched protocols. */
interface HandshakeResponse {
  readonly message: IncomingMessage;
  readonly socket: Socket | undefined;
  /** Data that arrived with the 101. */
  readonly head: NonSharedBuffer;
}

/** The GUID that is appended to the key before hashing (RFC 6455 §1.3). */
const WEBSOCKET_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/**
 * Waits for the response to a handshake.
 *
 * @param client aborts the handshake when it closes.
 * @param limitMs the time limit for the backend.
 * @throws an error that `failureReason` knows: of the connection, the timeout, or an invalid response.
 */
export function handshakeResponse(
  handshake: ClientRequest,
  client: HandshakeClient,
  limitMs: number,
): Promise<HandshakeResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<HandshakeResponse>();
  const timer = setTimeout(() => {
    const connecting = handshake.socket?.connecting ?? true;
    handshake.destroy(new BackendFault(connecting ? "connect_timeout" : "response_timeout"));
  }, limitMs);
  const onClientGone = (): void => {
    handshake.destroy(new BackendFault("handshake_aborted"));
  };
  client.once("close", onClientGone);
  handshake
    .once("upgrade", (message, socket, head) => {
      if (isSwitch(message, keyOf(handshake))) resolve({ message, socket, head });
      else {
        socket.destroy();
        reject(new BackendFault("invalid_answer"));
      }
    })
    .once("response", (message) => {
      if (isRefusal(message)) resolve({ message, socket: undefined, head: Buffer.alloc(0) });
      else handshake.destroy(new BackendFault("invalid_answer"));
    })
    .on("error", reject);
  return promise.finally(() => {
    clearTimeout(timer);
    client.off("close", onClientGone);
  });
}

/** Whether the backend switched to WebSocket, and in response to this key (RFC 6455 §4.1). */
function isSwitch({ headers }: IncomingMessage, key: string): boolean {
  return (
    headers.upgrade?.toLowerCase() === "websocket" &&
    headers["sec-websocket-accept"] === hash("sha1", key + WEBSOCKET_GUID, "base64")
  );
}

/** Whether the backend refused with a valid response. A 101 without a protocol arrives as an ordinary response, too. */
function isRefusal({ statusCode = 0, statusMessage = "", headers }: IncomingMessage): boolean {
  return statusCode >= 200 && isPassable(statusCode, statusMessage, headers);
}

function keyOf(handshake: ClientRequest): string {
  return String(handshake.getHeader("sec-websocket-key") ?? "");
}

import type { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { duplexPair } from "node:stream";
import { TLSSocket } from "node:tls";
import { GateError } from "../../core/request/errors.ts";
import type { DryRunRequest } from "../../core/explanation.ts";
import { createServer } from "../../lib/http/node-http.ts";
import { setPeerAddress } from "../../lib/node-internals/node-sockets.ts";
import { parserErrorCode, parserReason } from "../listener/parser-refusal.ts";

export interface ReadHead {
  readonly message: IncomingMessage;
  /** Whether it is an upgrade request. */
  readonly upgrade: boolean;
}

/**
 * Parses the head of a request the way the listener does: with Node's parser and the listener's settings, over an
 * in-memory connection.
 *
 * @param headerBytes the maximum size of the head.
 * @throws GateError for a head that the parser refuses, with the parser's error as its cause.
 */
export async function readHead(request: DryRunRequest, headerBytes: number): Promise<ReadHead> {
  const { promise, resolve, reject } = Promise.withResolvers<ReadHead>();
  const plain = (message: IncomingMessage): void => resolve({ message, upgrade: false });
  const server = createServer({
    maxHeaderSize: headerBytes,
    requireHostHeader: false,
    insecureHTTPParser: false,
  });
  server.maxHeadersCount = 0;
  server.on("request", plain).on("checkContinue", plain);
  server.on("checkExpectation", () => reject(new GateError("expectation_failed")));
  server.on("upgrade", (message) => resolve({ message, upgrade: true }));
  server.on("clientError", (cause: NodeJS.ErrnoException) => {
    reject(new GateError(parserErrorCode(cause), { cause, reason: parserReason(cause) }));
  });
  const [client, listener] = duplexPair();
  // Documented: any duplex stream may be passed to a server as a connection.
  server.emit("connection", listener);
  client.end(Buffer.from(request.head, "latin1"));
  try {
    const read = await promise;
    Object.defineProperty(read.message, "socket", { value: socketOf(request) });
    return read;
  } finally {
    client.destroy();
    listener.destroy();
  }
}

/** A placeholder for the connection. Nothing is ever read from or written to it. */
function socketOf({ secure, peer }: DryRunRequest): Socket {
  const socket = secure ? new TLSSocket(new Socket()) : new Socket();
  setPeerAddress(socket, peer, 0);
  socket.destroy();
  return socket;
}

import type { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { duplexPair } from "node:stream";
import { TLSSocket } from "node:tls";
import { GateError } from "../core/errors.ts";
import type { AskedRequest } from "../core/explanation.ts";
import { createServer } from "../lib/node-http.ts";

export interface ReadHead {
  readonly message: IncomingMessage;
  /** Whether it asks to switch protocols. */
  readonly upgrade: boolean;
}

/**
 * Reads the head of a request as the listener would: Node's own parser with the listener's settings, over a connection
 * that is only in memory.
 *
 * @param headerBytes the largest head.
 * @throws GateError for what the parser refuses, with the parser's error as its cause.
 */
export async function readHead(asked: AskedRequest, headerBytes: number): Promise<ReadHead> {
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
    const isOverflow = cause.code === "HPE_HEADER_OVERFLOW";
    reject(new GateError(isOverflow ? "header_too_large" : "bad_request", { cause }));
  });
  const [client, listener] = duplexPair();
  // Documented: any duplex stream may be given to a server as a connection.
  server.emit("connection", listener);
  client.end(Buffer.from(asked.head, "latin1"));
  try {
    const read = await promise;
    Object.defineProperty(read.message, "socket", { value: socketOf(asked) });
    return read;
  } finally {
    client.destroy();
    listener.destroy();
  }
}

/** Stands for the connection: nothing ever goes through it. */
function socketOf({ secure, peer }: AskedRequest): Socket {
  const socket = secure ? new TLSSocket(new Socket()) : new Socket();
  Object.defineProperty(socket, "remoteAddress", { value: peer });
  socket.destroy();
  return socket;
}

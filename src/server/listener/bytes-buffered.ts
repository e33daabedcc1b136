import type { ServerResponse as Response } from "node:http";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { headOf, responseOn } from "../../lib/node-internals/response-on-socket.ts";
import { ServerResponse } from "../../lib/http/node-http.ts";
import { TrackedResponse } from "../request/tracked-response.ts";

/** Data for a TLS client is buffered twice: as plaintext and as ciphertext. */
const TLS_FACTOR = 2;
/**
 * The buffer into which Node reads ciphertext, in bytes. A TLS connection retains it once it was filled, which happens if a
 * client sends much at once: 900 TLS connections with requests queued behind a slow response took 80 KB each in addition to
 * the data, instead of 40. Counted while data that the client has sent is waiting.
 */
const TLS_READ_BYTES = 64 * 1024;
/** 60 KB of buffered header fields took 186 KB of memory. */
const HEAD_COPIES = 2;

/**
 * Returns the memory of the data buffered for a connection, in bytes.
 *
 * @param held the bytes that others hold for it, such as pipelined requests.
 */
export function bytesBufferedOn(socket: Socket, held: number): number {
  const current = responseOn(socket);
  const response = current instanceof ServerResponse ? current : undefined;
  const isTls = socket instanceof TLSSocket;
  const unread = response === undefined ? socket.writableLength : bytesOfAnswer(response);
  const written = unread * (isTls ? TLS_FACTOR : 1);
  const unsent = held + (response?.req.readableLength ?? 0);
  const read = unsent > 0 && isTls ? TLS_READ_BYTES : 0;
  return written + unsent + read + bytesUnderWay(response);
}

/** Returns the bytes buffered between a client and a backend. */
function bytesUnderWay(response: Response | undefined): number {
  const tracked = response instanceof TrackedResponse ? response : undefined;
  return tracked?.transfer?.holder?.bufferedBytes ?? 0;
}

/** Returns the bytes buffered of a response. Node keeps its head as text in addition to the encoded form. */
function bytesOfAnswer(response: Response): number {
  return response.writableLength + HEAD_COPIES * (headOf(response)?.length ?? 0);
}

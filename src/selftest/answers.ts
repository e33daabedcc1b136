import type { IncomingMessage } from "node:http";
import { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { request } from "../lib/http/node-http.ts";

/** A final (not 1xx, except 101) response of the deployment. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  /** Whether it arrived completely. */
  readonly complete: boolean;
}

const STATUS_LINE = /HTTP\/1\.[01] (\d{3})[ \r]/g;
const SWITCHING = 101;

/**
 * Parses the final responses in the received bytes, in order. The bytes are split at each status line, and Node's HTTP
 * client parses each piece: the attacks write to raw sockets, but do not need an HTTP parser of their own. A body that
 * contains a status line would be split; the bodies inspected here are JSON or the deployment's refusals.
 *
 * @param methods the methods of the requests: a response to HEAD has no body.
 * @param ended whether the connection has ended after these bytes.
 */
export async function readAnswers(
  bytes: Buffer,
  methods: readonly string[],
  ended: boolean,
): Promise<Answer[]> {
  const found = [...bytes.toString("latin1").matchAll(STATUS_LINE)];
  const pieces = found
    .map((match, index) => ({
      status: Number(match[1]),
      bytes: bytes.subarray(match.index, found[index + 1]?.index),
      ended: ended || index + 1 < found.length,
    }))
    .filter(({ status }) => status === SWITCHING || status >= 200);
  return Promise.all(pieces.map((piece, index) => readOne(piece, methods[index] ?? "GET")));
}

async function readOne(
  piece: { readonly status: number; readonly bytes: Buffer; readonly ended: boolean },
  method: string,
): Promise<Answer> {
  const { status } = piece;
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const broken: Answer = { status, body: "", complete: false };
  const asked = request({ method, createConnection: () => played(piece.bytes) });
  asked.on("response", (response) => {
    text(response).then(
      (body) => resolve({ status, body, complete: isComplete(response, method, piece.ended) }),
      () => resolve(broken),
    );
  });
  asked.on("upgrade", () => resolve({ ...broken, complete: true }));
  asked.on("error", () => resolve(broken));
  asked.end();
  return promise;
}

/** Returns a connection that delivers the bytes and discards writes. */
function played(bytes: Buffer): Duplex {
  const stream = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  stream.push(bytes);
  stream.push(null);
  return stream;
}

/** Whether the response is complete. One without a length ends with its connection (RFC 9112 §6.3). */
function isComplete(response: IncomingMessage, method: string, ended: boolean): boolean {
  const { statusCode, headers, complete } = response;
  const bodyless = method === "HEAD" || statusCode === 204 || statusCode === 304;
  const framed = "content-length" in headers || "transfer-encoding" in headers;
  return complete && (ended || framed || bodyless);
}

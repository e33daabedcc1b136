import type { IncomingMessage } from "node:http";
import { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { request } from "../lib/http/node-http.ts";

/** A final response of the deployment. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  /** Whether it arrived completely. */
  readonly complete: boolean;
}

const STATUS_LINE = /HTTP\/1\.[01] (\d{3})[ \r]/g;
const SWITCHING = 101;

/**
 * Parses the final responses in the received bytes, in order. The bytes are cut where a status line begins, and Node's
 * own HTTP client parses each piece: the attacks write to bare sockets, but need no second HTTP parser. A body that
 * contains a status line would be cut in two; the bodies that are inspected are JSON or the deployment's refusals.
 *
 * @param methods of the requests: a response to HEAD has no body.
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

/** A connection that delivers the bytes and discards what is written. */
function played(bytes: Buffer): Duplex {
  const stream = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  stream.push(bytes);
  stream.push(null);
  return stream;
}

/** A response without a length ends with its connection (RFC 9112 §6.3). */
function isComplete(response: IncomingMessage, method: string, ended: boolean): boolean {
  const { statusCode, headers, complete } = response;
  const bodyless = method === "HEAD" || statusCode === 204 || statusCode === 304;
  const framed = "content-length" in headers || "transfer-encoding" in headers;
  return complete && (ended || framed || bodyless);
}

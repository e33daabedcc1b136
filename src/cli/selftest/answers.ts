import type { IncomingMessage } from "node:http";
import { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { request } from "../../lib/node-http.ts";

/** A final answer of the deployment. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  /** Whether all of it has come. */
  readonly complete: boolean;
}

const STATUS_LINE = /HTTP\/1\.[01] (\d{3})[ \r]/g;
const SWITCHING = 101;

/**
 * The final answers in what came back, in order. The bytes are cut where a status line begins, and each piece is read by
 * Node's own HTTP client: the attacks write on bare sockets, but no second parser of HTTP is needed for that. A body that
 * holds a status line of its own would be cut in two; those that are looked into are JSON, or the deployment's refusals.
 *
 * @param methods of the requests that are answered: an answer to HEAD has no body.
 * @param ended whether no more will come.
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

/** A connection on which the bytes arrive, and what is written is forgotten. */
function played(bytes: Buffer): Duplex {
  const stream = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  stream.push(bytes);
  stream.push(null);
  return stream;
}

/** An answer without a length ends with its connection (RFC 9112 §6.3). */
function isComplete(response: IncomingMessage, method: string, ended: boolean): boolean {
  const { statusCode, headers, complete } = response;
  const bodyless = method === "HEAD" || statusCode === 204 || statusCode === 304;
  const framed = "content-length" in headers || "transfer-encoding" in headers;
  return complete && (ended || framed || bodyless);
}

import type { IncomingMessage } from "node:http";
import { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { request } from "../../src/lib/http/node-http.ts";
import type { Arrival } from "./check-result.ts";
import { pairs, type RecordingBackend } from "./recording-backend.ts";

/** Observes what reaches the backend. */
export interface Witness {
  /** Whether it never observes anything. */
  readonly blind: boolean;
  /** Returns the requests of an attempt that reached the backend; undefined if unknown. */
  arrivals(mark: string, answers: readonly Answer[]): readonly Arrival[] | undefined;
  /** How many times the backend received bytes that are not HTTP. */
  unreadable(): number;
  forget(): void;
}

/** Does not observe the backend. */
export const NO_WITNESS: Witness = {
  blind: true,
  arrivals: () => undefined,
  unreadable: () => 0,
  forget: () => undefined,
};

/** Combines several recording backends, one for each target of one upstream or of several. */
export function recordingWitness(backends: readonly RecordingBackend[]): Witness {
  return {
    blind: false,
    arrivals: (mark) => backends.flatMap((backend) => backend.arrivals(mark)),
    unreadable: () => backends.reduce((sum, backend) => sum + backend.unreadable(), 0),
    forget() {
      for (const backend of backends) backend.forget();
    },
  };
}

/** The deployed backend echoes what it received, in the format of ECHO_SHAPE. */
export const ECHO_WITNESS: Witness = {
  ...NO_WITNESS,
  blind: false,
  arrivals(_mark, answers) {
    const echoes = answers.map(({ body }) => echoOf(body));
    // If a response is neither an error nor an echo, it is unknown what arrived.
    const hidden = answers.some(({ status }, index) => status < 400 && echoes[index] === undefined);
    return hidden ? undefined : echoes.filter((echo) => echo !== undefined);
  },
};

/** A description of the echo, for the help text. */
export const ECHO_SHAPE = `The echo is a JSON object: "method"; "url" or "path"; "headers" (an object of strings or lists of strings)
or "rawHeaders" (a list of alternating names and values); optionally "body" (a string).`;

function echoOf(body: string): Arrival | undefined {
  const echo = objectIn(body);
  if (echo === undefined) return undefined;
  const url = echo["url"] ?? echo["path"];
  const { method, body: echoed } = echo;
  const fields = fieldsOf(echo["rawHeaders"] ?? echo["headers"]);
  if (typeof method !== "string" || typeof url !== "string" || fields === undefined) {
    return undefined;
  }
  return { method, url, fields, body: typeof echoed === "string" ? echoed : undefined };
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function fieldsOf(value: unknown): (readonly [string, string])[] | undefined {
  if (Array.isArray(value)) return pairs(value.map(String));
  if (typeof value !== "object" || value === null) return undefined;
  return Object.entries(value).flatMap(([name, values]) =>
    [values].flat().map((each) => [name, String(each)] as const),
  );
}

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

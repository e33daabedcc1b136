import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, createSecureContext, type SecureContext } from "node:tls";
import { readMessages, valuesOf, type HttpMessage } from "./http-reader.ts";

/** Where to connect on 127.0.0.1: with TLS if a certificate authority is given, otherwise plain TCP. */
export interface Peer {
  readonly port: number;
  readonly ca?: string | undefined;
}

export interface RawResponse {
  readonly status: number;
  readonly headers: HttpMessage["headers"];
  readonly body: string;
  readonly trailers: HttpMessage["trailers"];
  /** Returns the value of a header, or undefined if it is absent. Multiple values are joined with ` | `. */
  header(name: string): string | undefined;
}

export interface Exchange {
  /** Everything received, as latin1. */
  readonly raw: string;
  /** Complete responses, including 1xx. */
  readonly responses: readonly RawResponse[];
  /** The last complete response; an empty one with status 0 if there was none. */
  readonly last: RawResponse;
  /** How it ended: all responses arrived, the peer closed, or the timeout passed. */
  readonly ended: "complete" | "closed" | "timeout";
}

export interface ExchangeOptions {
  /** The number of final (not 1xx) responses to wait for; Infinity waits for the close. 1 by default. */
  readonly responses?: number;
  readonly timeoutMs?: number;
  /** Closes the sending side after the bytes. */
  readonly halfClose?: boolean;
  /** The responses are to HEAD requests, so they have no body whatever their fields say. */
  readonly head?: boolean;
  /** Called with everything received so far, for exchanges in several steps (`Expect: 100-continue`). */
  readonly onBytes?: (raw: string, write: (bytes: string | Buffer) => void) => void;
}

/** Writes exactly these bytes (strings as latin1) on a new connection and reads the responses. */
export async function exchange(
  peer: Peer,
  bytes: string | Buffer,
  options: ExchangeOptions = {},
): Promise<Exchange> {
  const { responses: wanted = 1, timeoutMs = 8_000, halfClose = false, head = false } = options;
  const socket = await openSocket(peer);
  const chunks: Buffer[] = [];
  const { promise, resolve } = Promise.withResolvers<Exchange["ended"]>();
  const timer = setTimeout(resolve, timeoutMs, "timeout");
  socket.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    const received = Buffer.concat(chunks);
    options.onBytes?.(received.toString("latin1"), (more) => socket.write(toBuffer(more)));
    if (countFinal(readMessages("response", received, false, head).messages) >= wanted) {
      resolve("complete");
    }
  });
  socket.on("close", () => resolve("closed"));
  if (halfClose) {
    socket.end(toBuffer(bytes));
  } else {
    socket.write(toBuffer(bytes));
  }
  const ended = await promise;
  clearTimeout(timer);
  socket.destroy();
  const received = Buffer.concat(chunks);
  const responses = readMessages("response", received, ended === "closed", head).messages.map(
    toResponse,
  );
  const last = responses.at(-1) ?? NOTHING;
  return { raw: received.toString("latin1"), responses, last, ended };
}

/** Opens a connection. Errors on it lead to "close", never to an exception. */
export async function openSocket(peer: Peer): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const where = { host: "127.0.0.1", port: peer.port };
  const socket =
    peer.ca === undefined
      ? connectTcp(where, resolve)
      : connectTls({ ...where, ...trusting(peer.ca) }, resolve);
  socket.on("error", reject);
  await promise;
  return socket;
}

const contexts = new Map<string, SecureContext>();

/** Returns the options of a TLS connection that trusts this authority, whose certificate is parsed only once. */
export function trusting(ca: string) {
  const secureContext = contexts.get(ca) ?? createSecureContext({ ca });
  contexts.set(ca, secureContext);
  return { ca, secureContext, servername: "localhost" };
}

/** Builds a request: the lines joined with CRLF, an empty line, and the body. */
export function request(lines: readonly string[], body = ""): string {
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

/** Encodes a body as a single chunk, followed by the last chunk and the trailers. */
export function chunked(body: string, trailers: readonly string[] = []): string {
  const size = Buffer.byteLength(body, "latin1").toString(16);
  return `${size}\r\n${body}\r\n0\r\n${trailers.map((line) => `${line}\r\n`).join("")}\r\n`;
}

const NOTHING = toResponse({
  startLine: "HTTP/1.1 000",
  headers: [],
  body: Buffer.alloc(0),
  trailers: [],
});

function toResponse(message: HttpMessage): RawResponse {
  return {
    status: Number(message.startLine.slice(9, 12)),
    headers: message.headers,
    body: message.body.toString("latin1"),
    trailers: message.trailers,
    header(name) {
      const values = valuesOf(message.headers, name);
      return values.length === 0 ? undefined : values.join(" | ");
    },
  };
}

function countFinal(messages: readonly HttpMessage[]): number {
  return messages.filter(({ startLine }) => !startLine.startsWith("HTTP/1.1 1")).length;
}

function toBuffer(bytes: string | Buffer): Buffer {
  return typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes;
}

import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { readMessages, valuesOf, type HttpMessage } from "./http-reader.ts";

/** Where to connect to on 127.0.0.1: TLS when a certificate authority is given, else plain TCP. */
export interface Peer {
  readonly port: number;
  readonly ca?: string | undefined;
}

export interface RawResponse {
  readonly status: number;
  readonly headers: HttpMessage["headers"];
  readonly body: string;
  readonly trailers: HttpMessage["trailers"];
  /** The one value of a header, undefined when it is absent; several are joined with ` | `. */
  header(name: string): string | undefined;
}

export interface Exchange {
  /** Everything that came back, as latin1. */
  readonly raw: string;
  /** Whole responses, 1xx among them. */
  readonly responses: readonly RawResponse[];
  /** The last whole response, status 0 and empty when there was none. */
  readonly last: RawResponse;
  /** How it ended: the number of responses was reached, the peer closed, or the time was up. */
  readonly ended: "complete" | "closed" | "timeout";
}

export interface ExchangeOptions {
  /** Final (not 1xx) responses to wait for; Infinity waits for the close. 1 by default. */
  readonly responses?: number;
  readonly timeoutMs?: number;
  /** Ends our sending side after the bytes. */
  readonly halfClose?: boolean;
  /** The responses have no body, whatever their head says: they belong to HEAD. */
  readonly head?: boolean;
  /** Called with what came so far, for a client that answers in turns (`Expect: 100-continue`). */
  readonly onBytes?: (raw: string, write: (bytes: string | Buffer) => void) => void;
}

/** Writes exactly these bytes (strings as latin1) on a connection of its own and reads what comes back. */
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

/** An open connection; errors on it end in "close", never in an exception. */
export async function openSocket(peer: Peer): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const where = { host: "127.0.0.1", port: peer.port };
  const socket =
    peer.ca === undefined
      ? connectTcp(where, resolve)
      : connectTls({ ...where, ca: peer.ca, servername: "localhost" }, resolve);
  socket.on("error", reject);
  await promise;
  return socket;
}

/** Bytes of a request: the lines joined with CRLF, an empty line, and the body. */
export function request(lines: readonly string[], body = ""): string {
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}

/** A body as one chunk, with its end. */
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

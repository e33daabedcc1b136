import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { codeOrMessage } from "../../src/lib/text/error-code.ts";
import { type Answer, readAnswers } from "./answers.ts";
import type { Expectation, Observed } from "./check-result.ts";
import { chunked, request, type Target } from "./deployment.ts";
import { refused } from "./expectations.ts";

/** How requests are written and refused in one version of HTTP. Fields are written `Name: value`. */
export interface RequestWriter {
  /** Returns the bytes of a GET. */
  get(target: Target, path: string, fields: readonly string[]): string;
  /** Returns the bytes of a POST with a body of four bytes. */
  post(
    target: Target,
    path: string,
    fields: readonly string[],
    trailers?: readonly string[],
  ): string;
  /** Returns the bytes of a request to open a WebSocket. */
  webSocket(target: Target, path: string, fields: readonly string[]): string;
  /** What such a request is called. */
  readonly webSocketName: "upgrade" | "WebSocket";
  readonly refused: Expectation;
}

const UPGRADE = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

export const HTTP1: RequestWriter = {
  get: ({ host }, path, fields) =>
    request([`GET ${path} HTTP/1.1`, `Host: ${host}`, ...fields, "Connection: close"]),
  post({ host }, path, fields, trailers) {
    const head = [`POST ${path} HTTP/1.1`, `Host: ${host}`, ...fields, "Connection: close"];
    return trailers === undefined
      ? request([...head, "Content-Length: 4"], "body")
      : request(
          [...head, "Transfer-Encoding: chunked", "Trailer: X-Selftest"],
          chunked("body", trailers),
        );
  },
  webSocket: ({ host }, path, fields) =>
    request([`GET ${path} HTTP/1.1`, `Host: ${host}`, ...fields, ...UPGRADE]),
  webSocketName: "upgrade",
  refused,
};

/** The address of the deployment, and how to connect to it. */
export interface Peer {
  readonly host: string;
  readonly port: number;
  /** Undefined for plain HTTP. */
  readonly tls: ConnectionOptions | undefined;
  /** Timeout of the connection, and also of the exchange, in milliseconds. */
  readonly timeoutMs: number;
}

export type Exchanged = Omit<Observed, "arrived">;

/**
 * Writes exactly these bytes (a string as latin1) on a new connection. Closes it once enough responses have arrived,
 * when the deployment closes it, or after the timeout. Never throws.
 *
 * @param methods the methods of the requests in the bytes.
 * @param enough whether these complete responses suffice; by default one response per request.
 */
export async function exchange(
  peer: Peer,
  bytes: string,
  methods: readonly string[],
  enough = (answers: readonly Answer[]): boolean => answers.length >= methods.length,
): Promise<Exchanged> {
  return onConnection(peer, "http/1.1", (socket) =>
    talk(socket, { bytes, methods, enough, timeoutMs: peer.timeoutMs }),
  );
}

/**
 * Opens a connection, runs `talk` on it, and closes it. Never throws.
 *
 * @param protocol the only protocol offered with ALPN, over TLS.
 */
export async function onConnection(
  peer: Peer,
  protocol: string,
  talk: (socket: Socket) => Promise<Exchanged>,
): Promise<Exchanged> {
  const socket = open(peer, protocol).setNoDelay(true);
  // A connection that fails also emits "close".
  socket.on("error", () => undefined);
  try {
    const ready = peer.tls === undefined ? "connect" : "secureConnect";
    await once(socket, ready, { signal: AbortSignal.timeout(peer.timeoutMs) });
    return await talk(socket);
  } catch (error) {
    return { answers: [], end: "unreachable", raw: "", error: codeOf(error) };
  } finally {
    socket.destroy();
  }
}

function open({ host, port, tls }: Peer, protocol: string): Socket {
  return tls === undefined
    ? connectTcp({ host, port })
    : connectTls({ host, port, ALPNProtocols: [protocol], ...tls });
}

async function talk(
  socket: Socket,
  talk: {
    readonly bytes: string;
    readonly methods: readonly string[];
    readonly enough: (answers: readonly Answer[]) => boolean;
    readonly timeoutMs: number;
  },
): Promise<Exchanged> {
  const chunks: Buffer[] = [];
  const { promise, resolve } = Promise.withResolvers<"closed" | "open">();
  const timer = setTimeout(resolve, talk.timeoutMs, "open");
  const look = async (): Promise<void> => {
    const answers = await readAnswers(Buffer.concat(chunks), talk.methods, false);
    if (talk.enough(answers.filter(({ complete }) => complete))) resolve("open");
  };
  socket.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    void look();
  });
  socket.on("close", () => resolve("closed"));
  socket.write(Buffer.from(talk.bytes, "latin1"));
  const end = await promise;
  clearTimeout(timer);
  const received = Buffer.concat(chunks);
  const answers = await readAnswers(received, talk.methods, end === "closed");
  return { answers, end, raw: received.toString("latin1") };
}

function codeOf(error: unknown): string {
  const late = error instanceof Error && error.name === "AbortError";
  return late ? "no connection in time" : codeOrMessage(error);
}

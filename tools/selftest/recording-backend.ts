import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { ListenOptions, Socket } from "node:net";
import { acceptByFirstBytes } from "../../src/lib/http/first-bytes.ts";
import { createServer, nodeHttp2 } from "../../src/lib/http/node-http.ts";
import type { Arrival } from "./check-result.ts";

/**
 * A backend that records the requests that reach it over HTTP/1.1, or over HTTP/2 without TLS (h2c with prior
 * knowledge). It serves everything that parses as a request, even bytes left over from another request.
 */
export interface RecordingBackend extends AsyncDisposable {
  /** `127.0.0.1:8080`, or the path of a Unix socket. */
  readonly address: string;
  /**
   * Returns the complete requests with this mark in their path, and those for a key. Others, such as health checks, are
   * ignored.
   */
  arrivals(mark: string): readonly Arrival[];
  /** How many times bytes arrived that are not HTTP. */
  unreadable(): number;
  /** Whether a complete request has arrived since the start. */
  used(): boolean;
  /** Forgets the requests that have arrived. */
  forget(): void;
}

/**
 * The path at which hostile tokens claim that their key is. A request for it shows that the deployment believed a
 * token.
 */
export const KEY_PATH = "/selftest-keys";

/** Requests with this in their path get a response with hop-by-hop headers. */
export const ANSWER_WITH_HOPS = "answer-with-hops";

/** The gRPC call with which proxies check the health of a backend (grpc.health.v1). */
const GRPC_HEALTH = "/grpc.health.v1.Health/Check";
/** An uncompressed gRPC message of two bytes: field 1, `status`, is 1, SERVING. */
const GRPC_SERVING = Buffer.from([0, 0, 0, 0, 2, 0x08, 0x01]);

const LARGEST_HEAD = 256 * 1024;
const MOST_FIELDS = 1_024;
const LARGEST_BODY = 1024 * 1024;
const FIRST_BYTES_MS = 60_000;

/** A request over either version of HTTP; Node's HTTP/2 servers provide the same interface. */
type AnyRequest = IncomingMessage | Http2ServerRequest;

interface Recorded {
  readonly arrivals: Arrival[];
  unreadable: number;
  used: boolean;
}

/** Starts a recording backend. @throws the error of `listen` if the address is not available. */
export async function startRecordingBackend(where: ListenOptions): Promise<RecordingBackend> {
  const recorded: Recorded = { arrivals: [], unreadable: 0, used: false };
  const server = serverOfHttp1(recorded);
  const http2 = serverOfHttp2(recorded);
  acceptByFirstBytes(server, {
    offered: () => true,
    headerMs: () => FIRST_BYTES_MS,
    accept: (socket) => void http2.emit("connection", socket),
  });
  const connections = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
  });
  server.listen(where);
  await once(server, "listening");
  return {
    address: addressOf(server),
    arrivals: (mark) =>
      recorded.arrivals.filter(({ url }) => url.includes(mark) || url.startsWith(KEY_PATH)),
    unreadable: () => recorded.unreadable,
    used: () => recorded.used,
    forget: () => void recorded.arrivals.splice(0),
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      for (const socket of connections) socket.destroy();
      await closed;
    },
  };
}

function serverOfHttp1(recorded: Recorded): Server {
  const server = createServer({ requireHostHeader: false, maxHeaderSize: LARGEST_HEAD });
  server.maxHeadersCount = 0;
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    // Incomplete requests do not count as arrived.
    record(request, recorded).then(
      () => answer(request, response),
      () => response.destroy(),
    );
  };
  server.on("request", handle).on("checkExpectation", handle);
  server.on("connect", (request: IncomingMessage, socket: Socket) => {
    recorded.arrivals.push(arrivalOf(request, ""));
    socket.destroy();
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    const { code = "" } = error;
    // A connection that ends within a request carried a request that the proxy refused while forwarding it.
    if (code.startsWith("HPE_") && code !== "HPE_INVALID_EOF_STATE") recorded.unreadable += 1;
    socket.destroy();
  });
  return server;
}

/** Its connections come from the HTTP/1.1 server, which listens. */
function serverOfHttp2(
  recorded: Recorded,
): ReturnType<ReturnType<typeof nodeHttp2>["createServer"]> {
  const server = nodeHttp2().createServer({
    maxHeaderListPairs: MOST_FIELDS,
    settings: { maxHeaderListSize: LARGEST_HEAD },
  });
  server.on("request", (request, response) => {
    record(request, recorded).then(
      () => (request.url === GRPC_HEALTH ? answerHealth(response) : answer(request, response)),
      () => response.stream.destroy(),
    );
  });
  server.on("sessionError", ({ code }: NodeJS.ErrnoException) => {
    if (code === "ERR_HTTP2_ERROR") recorded.unreadable += 1;
  });
  return server;
}

/** Responds that the backend is healthy. */
function answerHealth(response: Http2ServerResponse): void {
  response.setHeader("content-type", "application/grpc");
  response.addTrailers({ "grpc-status": "0" });
  response.end(GRPC_SERVING);
}

async function record(request: AnyRequest, recorded: Recorded): Promise<void> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    const bytes: Buffer = chunk;
    length += bytes.length;
    if (length > LARGEST_BODY) throw new Error("the body is too large");
    chunks.push(bytes);
  }
  // The body of a stream that is reset ends without an error, like a complete one.
  if ("stream" in request && request.stream.aborted) throw new Error("the body was cut off");
  recorded.arrivals.push(arrivalOf(request, Buffer.concat(chunks).toString("latin1")));
  recorded.used = true;
}

function arrivalOf(request: AnyRequest, body: string): Arrival {
  const { method = "", url = "", rawHeaders, rawTrailers } = request;
  const fields = pairs([...rawHeaders, ...rawTrailers]);
  return { method, url, fields: fields.filter(([name]) => !name.startsWith(":")), body };
}

/** Groups an alternating list of names and values into pairs. */
export function pairs(list: readonly string[]): (readonly [string, string])[] {
  return list.flatMap((name, i) => (i % 2 === 0 ? [[name, list[i + 1] ?? ""] as const] : []));
}

/** Echoes the path, so that a response that goes to the wrong client is detected. */
function answer(
  { method, url = "", httpVersionMajor }: AnyRequest,
  response: ServerResponse | Http2ServerResponse,
): void {
  response.setHeader("Content-Type", "application/json");
  if (url.includes(ANSWER_WITH_HOPS)) {
    response.setHeader("Proxy-Authenticate", "Basic realm=leaked");
    // HTTP/2 does not allow the others (RFC 9113 §8.2.2).
    if (httpVersionMajor === 1) {
      response.setHeader("Connection", "X-Selftest-Hop, keep-alive");
      response.setHeader("X-Selftest-Hop", "leaked");
      response.setHeader("Keep-Alive", "timeout=4711");
    }
  }
  response.end(JSON.stringify({ method, url }));
}

function addressOf(server: Server): string {
  const address = server.address();
  if (address === null || typeof address === "string") return address ?? "";
  const { address: host, port } = address;
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

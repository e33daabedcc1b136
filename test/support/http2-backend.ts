import { once } from "node:events";
import {
  createSecureServer,
  createServer,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from "node:http2";
import { text } from "node:stream/consumers";
import { testCertificates } from "./certificates.ts";
import { listeningPort } from "./listening-port.ts";

/** A request that an HTTP/2 backend received. */
export interface Http2Request {
  /** Includes pseudo-header fields. */
  readonly headers: IncomingHttpHeaders;
  /** The number of its connection, from 0. */
  readonly connection: number;
  readonly stream: ServerHttp2Stream;
  readonly path: string;
  /** Resolves with the body. Rejects if it is cut off. */
  body(): Promise<string>;
  /** The trailers, once the body has been read. */
  trailers(): IncomingHttpHeaders;
}

export interface Http2Backend extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly Http2Request[];
  /** All connections so far. */
  readonly sessions: readonly ServerHttp2Session[];
  close(): Promise<void>;
}

interface Http2BackendOptions extends ServerOptions {
  /** The protocols that it offers over TLS. Without this there is no TLS. */
  readonly tls?: readonly ("h2" | "http/1.1")[];
}

/** Starts an HTTP/2 backend. @param script answers a request; by default with 200, its method and path. */
export async function startHttp2Backend(
  script: (request: Http2Request) => unknown = ({ stream, headers }) => {
    stream.respond({ ":status": 200 });
    stream.end(`${headers[":method"]} ${headers[":path"]}`);
  },
  { tls, ...options }: Http2BackendOptions = {},
): Promise<Http2Backend> {
  const requests: Http2Request[] = [];
  const sessions: ServerHttp2Session[] = [];
  const { server: pair } = await testCertificates();
  const server =
    tls === undefined
      ? createServer(options)
      : createSecureServer({ ...options, ...pair, allowHTTP1: tls.includes("http/1.1") });
  server.on("session", (session: ServerHttp2Session) => {
    sessions.push(session);
    session.on("error", () => undefined);
  });
  server.on("sessionError", () => undefined);
  server.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    stream.on("error", () => undefined);
    let trailers: IncomingHttpHeaders = {};
    stream.on("trailers", (behind: IncomingHttpHeaders) => (trailers = behind));
    const connection = sessions.findIndex((session: Http2Session) => session === stream.session);
    const request: Http2Request = {
      headers,
      connection,
      stream,
      path: headers[":path"] ?? "",
      body: () => text(stream),
      trailers: () => trailers,
    };
    requests.push(request);
    script(request);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = async (): Promise<void> => {
    for (const session of sessions) session.destroy();
    server.close();
    if (server.listening) await once(server, "close");
  };
  return {
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${listeningPort(server)}`,
    requests,
    sessions,
    close,
    [Symbol.asyncDispose]: close,
  };
}

import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import { buffer } from "node:stream/consumers";
import type { Peer } from "./raw-client.ts";

/** A response over HTTP/2. */
interface Http2Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly trailers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Http2Client extends AsyncDisposable {
  readonly session: ClientHttp2Session;
  /** Begins a request; the caller ends it. */
  open(headers: OutgoingHttpHeaders, options?: { endStream?: boolean }): ClientHttp2Stream;
  /** Sends a request and reads its response. Rejects when the stream is reset. */
  ask(headers: OutgoingHttpHeaders, body?: string | Buffer): Promise<Http2Answer>;
}

/** Connects over TLS if the peer has a certificate, otherwise with prior knowledge in the clear. */
export async function connectHttp2({ port, ca }: Peer): Promise<Http2Client> {
  const session = connect(`${ca === undefined ? "http" : "https"}://localhost:${port}`, {
    ...(ca === undefined ? {} : { ca }),
    lookup: (_name, _options, found) => found(null, [{ address: "127.0.0.1", family: 4 }]),
  });
  await once(session, "connect");
  session.on("error", () => undefined);
  return {
    session,
    open: (headers, options) => session.request(headers, options),
    ask: (headers, body) =>
      answerOf(session.request(headers, { endStream: body === undefined }), body),
    async [Symbol.asyncDispose]() {
      session.destroy();
    },
  };
}

/** Sends a body and reads the response. */
async function answerOf(stream: ClientHttp2Stream, body?: string | Buffer): Promise<Http2Answer> {
  if (body !== undefined) stream.end(body);
  let trailers: IncomingHttpHeaders = {};
  stream.on("trailers", (fields: IncomingHttpHeaders) => (trailers = fields));
  const { promise, resolve, reject } = Promise.withResolvers<IncomingHttpHeaders>();
  stream.once("response", resolve).once("error", reject);
  stream.once("close", () => reject(new Error(`closed with ${stream.rstCode}`)));
  const headers = await promise;
  const content = await buffer(stream);
  return {
    status: Number(headers[":status"]),
    headers,
    trailers,
    body: content.toString("latin1"),
  };
}

import { once } from "node:events";
import type { ClientHttp2Stream, IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http2";
import { buffer } from "node:stream/consumers";
import type { Http2Client } from "./http2-client.ts";
import { webSocketOn, type WebSocketClient } from "./websocket.ts";

/** An extended CONNECT (RFC 8441) and its response. */
export interface Tunnel {
  readonly stream: ClientHttp2Stream;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The body of a response that opens no tunnel. */
  body(): Promise<string>;
}

/** Requests a tunnel once the server has announced support. @param early bytes to send before the response. */
export async function connectTunnel(
  client: Http2Client,
  path: string,
  fields: OutgoingHttpHeaders = {},
  early?: Buffer,
): Promise<Tunnel> {
  const { session } = client;
  if (session.remoteSettings.enableConnectProtocol === undefined) {
    await once(session, "remoteSettings");
  }
  const stream = client.open({
    ":method": "CONNECT",
    ":protocol": "websocket",
    ":scheme": "https",
    ":authority": "localhost",
    ":path": path,
    "sec-websocket-version": "13",
    ...fields,
  });
  stream.on("error", () => undefined);
  if (early !== undefined) stream.write(early);
  const { promise, resolve, reject } = Promise.withResolvers<IncomingHttpHeaders>();
  stream.once("response", resolve);
  stream.once("close", () => reject(new Error(`closed with ${stream.rstCode}`)));
  const headers = await promise;
  return {
    stream,
    headers,
    status: Number(headers[":status"]),
    body: async () => String(await buffer(stream)),
  };
}

/** Opens a WebSocket over HTTP/2. */
export async function openOverHttp2(
  client: Http2Client,
  path: string,
  fields: OutgoingHttpHeaders = {},
): Promise<WebSocketClient> {
  const { stream, status } = await connectTunnel(client, path, fields);
  if (status !== 200) throw new Error(`the extended CONNECT was answered with ${status}`);
  return webSocketOn(stream);
}

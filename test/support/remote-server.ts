import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { listeningPort } from "./listening-port.ts";

export interface Asked {
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** The response: a status and a body, none at all, or a reset connection. */
export type RemoteReply = { readonly status?: number; readonly body?: unknown } | "hang" | "reset";

export interface RemoteServer extends AsyncDisposable {
  readonly url: string;
  readonly asked: readonly Asked[];
  close(): Promise<void>;
}

/** Starts a server that Sallyport queries about requests: an API server, an identity provider, a policy agent. */
export async function startRemoteServer(
  answer: (asked: Asked) => RemoteReply | Promise<RemoteReply>,
): Promise<RemoteServer> {
  const asked: Asked[] = [];
  const reply = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { url = "", headers } = request;
    const each = { url, headers, body: await text(request) };
    asked.push(each);
    const given = await answer(each);
    if (given === "hang") return;
    if (given === "reset") {
      request.socket.destroy();
      return;
    }
    const { status = 200, body = {} } = given;
    response.writeHead(status, { "content-type": "application/json" });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };
  const server = createServer((request, response) => void reply(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  let closed: Promise<unknown> | undefined;
  const close = async (): Promise<void> => {
    if (closed === undefined) {
      closed = once(server, "close");
      server.close();
      server.closeAllConnections();
    }
    await closed;
  };
  const url = `http://127.0.0.1:${listeningPort(server)}`;
  return { url, asked, close, [Symbol.asyncDispose]: close };
}

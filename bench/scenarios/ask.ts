import { request as plainRequest } from "node:http";
import { request as tlsRequest } from "node:https";
import { text } from "node:stream/consumers";

export interface Question {
  readonly port: number;
  /** The certificate to trust; undefined for plain HTTP. */
  readonly ca: string | undefined;
  readonly path: string;
  readonly token?: string;
  /** JSON to post. */
  readonly body?: string;
}

export interface Reply {
  readonly status: number;
  readonly body: string;
}

/** Sends one request on a new connection. Rejects if no answer arrives within ten seconds. */
export async function ask({ port, ca, path, token, body }: Question): Promise<Reply> {
  const headers = {
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(body !== undefined && { "content-type": "application/json" }),
  };
  const options = {
    host: "127.0.0.1",
    port,
    path,
    headers,
    agent: false,
    method: body === undefined ? "GET" : "POST",
    signal: AbortSignal.timeout(10_000),
  };
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const request = ca === undefined ? plainRequest(options) : tlsRequest({ ...options, ca });
  request.on("error", reject).on("response", (response) => {
    text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
  });
  request.end(body);
  return promise;
}

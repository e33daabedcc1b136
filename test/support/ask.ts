import { request as httpRequest, type Agent, type IncomingHttpHeaders } from "node:http";
import { request as httpsRequest } from "node:https";
import { text } from "node:stream/consumers";
import { trusting, type Peer } from "./raw-client.ts";

export interface Question {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent with a Content-Length. */
  readonly body?: string | Buffer;
  /** A bearer token to send. */
  readonly token?: string;
  /** Without one, a new connection is opened, and closed after the response. */
  readonly agent?: Agent;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly trailers: NodeJS.Dict<string>;
}

/**
 * Sends a request the way an ordinary client does. Rejects if the connection breaks before the response is complete.
 */
export async function ask(peer: Peer, path: string, question: Question = {}): Promise<Answer> {
  const { method = "GET", headers = {}, body, token, agent } = question;
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const sent = (peer.ca === undefined ? httpRequest : httpsRequest)(
    {
      host: "127.0.0.1",
      port: peer.port,
      ...(peer.ca === undefined ? {} : trusting(peer.ca)),
      path,
      method,
      agent: agent ?? false,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) }),
        ...headers,
      },
    },
    (response) => {
      const { statusCode = 0, headers: answered } = response;
      text(response).then(
        (whole) =>
          resolve({
            status: statusCode,
            headers: answered,
            body: whole,
            trailers: response.trailers,
          }),
        reject,
      );
    },
  );
  sent.on("error", reject);
  sent.end(body);
  return promise;
}

/** Parses the body of a response. Throws if it is not a JSON object. */
export function fieldsOf({ body }: Pick<Answer, "body">): Record<string, unknown> {
  const value: unknown = JSON.parse(body);
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error(`not a JSON object: ${body}`);
  }
  return { ...value };
}

/**
 * Sends a login request and returns its response, success or not. Objects are sent as JSON, anything else unchanged.
 */
export function askLogin(
  peer: Peer,
  body: string | Buffer | Readonly<Record<string, unknown>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const bytes = typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return ask(peer, "/api/authenticate", {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: bytes,
  });
}

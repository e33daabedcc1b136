import type {
  Agent as HttpAgent,
  ClientRequest,
  IncomingHttpHeaders,
  IncomingMessage,
} from "node:http";
import { codeOrMessage, RemoteError } from "../text/error-code.ts";
import { Agent, request } from "./node-http.ts";

const LOOPBACK = /^(?:127(?:\.\d+){3}|\[::1\]|localhost)$/;

/**
 * Whether responses from this URL can be trusted: it must use https, or http on the loopback interface. Refuses
 * credentials, which would reach logs, and a fragment, which is never sent.
 */
export function isSafeRemoteUrl(value: string): boolean {
  if (!URL.canParse(value) || value.includes("#")) return false;
  const { protocol, hostname, username, password } = new URL(value);
  const safe = protocol === "https:" || (protocol === "http:" && LOOPBACK.test(hostname));
  return safe && username === "" && password === "";
}

/** The message for a refused URL. */
export const SAFE_REMOTE_URL =
  "must be an https URL without credentials (http is for loopback alone)";

export interface RemoteQuestion {
  readonly method: "GET" | "POST";
  /** http or https. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface RemoteAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface Exchange {
  /** Made by `remoteAgent` for the scheme of the question. */
  readonly agent: HttpAgent;
  /** Aborts the exchange. */
  readonly signal: AbortSignal;
  /** The largest body of an answer, in bytes. */
  readonly maxBytes: number;
}

const MAX_HEADER_BYTES = 16_384;
/** The most interim responses (1xx) before the final one. */
const MOST_INTERIM = 16;
/** How long a connection may be idle, in milliseconds: less than servers allow, including Node's 5 s. */
const IDLE_MS = 4_000;

/**
 * Sends a request to a configured server, and reads the whole answer, whatever its status. Follows no redirects, which
 * could send a secret elsewhere. The request must be safe to repeat: it is sent again if the server closed the idle
 * connection just as it was reused.
 *
 * @throws RemoteError or the system's error.
 */
export async function askRemote(
  question: RemoteQuestion,
  exchange: Exchange,
): Promise<RemoteAnswer> {
  try {
    return await askOnce(question, exchange);
  } catch (error) {
    if (!(error instanceof StaleConnection)) throw error;
    return askOnce(question, exchange);
  }
}

/**
 * Creates an agent that keeps connections to the servers of one scheme.
 *
 * @param connections the most to one server.
 * @param authorities PEM of the authorities that may sign a server's certificate, instead of Node's.
 */
export function remoteAgent(
  secure: boolean,
  connections: number,
  authorities: string | undefined,
): HttpAgent {
  const options = {
    keepAlive: true,
    maxSockets: connections,
    maxFreeSockets: connections,
    timeout: IDLE_MS,
    ...(authorities === undefined ? {} : { ca: authorities }),
  };
  return secure ? new (secureHttp().Agent)(options) : new Agent(options);
}

class StaleConnection extends RemoteError {}

async function askOnce(
  { method, url, headers, body }: RemoteQuestion,
  { agent, signal, maxBytes }: Exchange,
): Promise<RemoteAnswer> {
  const length = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
  const options = { method, agent, signal, maxHeaderSize: MAX_HEADER_BYTES };
  const send = url.startsWith("https:") ? secureHttp().request : request;
  const sent = send(url, { ...options, headers: { ...headers, ...length } });
  const responded = responseTo(sent);
  sent.end(body);
  const response = await responded;
  try {
    const text = await textOf(response, maxBytes);
    return { status: response.statusCode ?? 0, headers: response.headers, text };
  } catch (error) {
    sent.destroy();
    throw error;
  }
}

async function responseTo(sent: ClientRequest): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  sent.once("response", resolve);
  // Without a listener, Node destroys the connection, and reports nothing.
  sent.once("upgrade", (_response, socket) => {
    socket.destroy();
    reject(new RemoteError("it switches protocols"));
  });
  let interim = 0;
  sent.on("information", () => {
    interim += 1;
    if (interim > MOST_INTERIM) sent.destroy(new RemoteError("too many interim responses"));
  });
  sent.once("close", () => reject(new RemoteError("the connection was closed without an answer")));
  sent.on("error", (error) => {
    const stale = sent.reusedSocket && codeOrMessage(error) === "ECONNRESET";
    reject(stale ? new StaleConnection("the connection was closed", error) : error);
  });
  return promise;
}

async function textOf(response: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBytes) throw new RemoteError(`larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** `node:https`, loaded when first needed. */
const secureHttp = () => process.getBuiltinModule("node:https");

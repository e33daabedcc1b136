import { isIP, Socket } from "node:net";
import type { IncomingMessage } from "node:http";
import { duplexPair } from "node:stream";
import { TLSSocket } from "node:tls";
import type { AdminPage } from "../../core/admin-page.ts";
import type { DryRunRequest, Explanation } from "../../core/explanation.ts";
import { failure, restrictedPage, success } from "./state-pages.ts";
import {
  createServer,
  METHODS,
  validateHeaderName,
  validateHeaderValue,
} from "../../lib/http/node-http.ts";
import { GateError } from "../../core/request/errors.ts";
import { setPeerAddress } from "../../lib/node-internals/node-sockets.ts";
import { parserRefusal } from "../listener/client-error.ts";

/** A query to explain a request. */
interface ExplainQuery {
  readonly method: string;
  /** `https://host/path`, or only a path. */
  readonly url: string;
  /** `Name: value` each. */
  readonly headers: readonly string[];
  /** Address of the TCP peer. */
  readonly peer: string;
}

/** The query describes no valid request. The message says why, without header values. */
export class ExplainQueryError extends Error {
  override readonly name = "ExplainQueryError";
}

/** A WebSocket key, so that users need not type one; from RFC 6455 §1.3. */
const SAMPLE_KEY = "dGhlIHNhbXBsZSBub25jZQ==";

const URL_FORM = /^(?:(https?):\/\/([^/?#]+))?([/?#].*)?$/i;

/** Creates the head that a client would send. Leaves the path as written, as an attacker would. @throws ExplainQueryError */
export function createDryRunRequest(query: ExplainQuery): DryRunRequest {
  const { method, url, peer } = query;
  if (!METHODS.includes(method) || method === "CONNECT") {
    throw new ExplainQueryError("the method is none that can be explained");
  }
  const [, scheme = "https", authority = "localhost", rest = "/"] = URL_FORM.exec(url) ?? [];
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  if (url === "" || !URL_FORM.test(url) || /[\u0000-\u0020\u007f]/.test(url)) {
    throw new ExplainQueryError("the URL must be https://host/path, http://host/path or /path");
  }
  if (isIP(peer) === 0) throw new ExplainQueryError("the client must be an address");
  // Clients send non-ASCII characters as UTF-8; the head has one character per byte.
  const target = Buffer.from(rest.startsWith("/") ? rest : `/${rest}`).toString("latin1");
  const fields = query.headers.map(fieldOf);
  const has = (wanted: string): boolean => fields.some(([name]) => name.toLowerCase() === wanted);
  if (!has("host")) fields.unshift(checked("Host", authority));
  if (has("upgrade") && !has("sec-websocket-key")) fields.push(["Sec-WebSocket-Key", SAMPLE_KEY]);
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const head = `${method} ${target} HTTP/1.1\r\n${lines}\r\n`;
  return { head, secure: scheme.toLowerCase() === "https", peer };
}

function fieldOf(line: string): [name: string, value: string] {
  const colon = line.indexOf(":");
  if (colon < 1) throw new ExplainQueryError("a header must be Name: value");
  return checked(line.slice(0, colon), line.slice(colon + 1).trim());
}

function checked(name: string, value: string): [name: string, value: string] {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  } catch {
    throw new ExplainQueryError("a header has a name or a value that cannot be sent");
  }
  return [name, value];
}

const LOOPBACK = "127.0.0.1";

/**
 * `GET /-/explain?method=&url=&header=Name: value&client=address`: the explanation as JSON. The token is taken from
 * the request itself: from its `Authorization` field, or another one in which routes expect tokens or keys.
 *
 * @param places returns the names of those others, in lower case.
 */
export function explainPage(
  explain: (request: DryRunRequest) => Promise<Explanation>,
  places: () => readonly string[],
): AdminPage {
  return restrictedPage("GET", "/-/explain", async ({ query, headers }) => {
    const asked = query.getAll("header");
    const own = ["authorization", ...places()];
    // A query ends up in logs and histories.
    const secret = new Set([...own, "proxy-authorization", "cookie"]);
    const names = asked.map((line) => line.split(":", 1)[0]?.trim().toLowerCase() ?? "");
    if (names.some((name) => secret.has(name))) {
      const where = "send it as Authorization, or in the header that the route names";
      return failure(400, `a credential has no place in a query: ${where}`);
    }
    const sent = own.flatMap((name) => [headers[name] ?? []].flat().map((each) => [name, each]));
    const fields = [...asked, ...sent.map((pair) => pair.join(": "))];
    try {
      const request = createDryRunRequest({
        method: query.get("method") ?? "GET",
        url: query.get("url") ?? "",
        headers: fields,
        peer: query.get("client") ?? LOOPBACK,
      });
      return success("The request was explained, not sent", await explain(request));
    } catch (error) {
      if (error instanceof ExplainQueryError) return failure(400, error.message);
      throw error;
    }
  });
}

export interface ReadHead {
  readonly message: IncomingMessage;
  /** Whether it is an upgrade request. */
  readonly upgrade: boolean;
}

/**
 * Parses the head of a request the way the listener does: with Node's parser and the listener's settings, over an
 * in-memory connection.
 *
 * @param headerBytes the maximum size of the head.
 * @throws GateError for a head that the parser refuses, with the parser's error as its cause.
 */
export async function readHead(request: DryRunRequest, headerBytes: number): Promise<ReadHead> {
  const { promise, resolve, reject } = Promise.withResolvers<ReadHead>();
  const plain = (message: IncomingMessage): void => resolve({ message, upgrade: false });
  const server = createServer({
    maxHeaderSize: headerBytes,
    requireHostHeader: false,
    insecureHTTPParser: false,
  });
  server.maxHeadersCount = 0;
  server.on("request", plain).on("checkContinue", plain);
  server.on("checkExpectation", () => reject(new GateError("expectation_failed")));
  server.on("upgrade", (message) => resolve({ message, upgrade: true }));
  server.on("clientError", (cause: NodeJS.ErrnoException) => reject(parserRefusal(cause)));
  const [client, listener] = duplexPair();
  // Documented: any duplex stream may be passed to a server as a connection.
  server.emit("connection", listener);
  client.end(Buffer.from(request.head, "latin1"));
  try {
    const read = await promise;
    Object.defineProperty(read.message, "socket", { value: socketOf(request) });
    return read;
  } finally {
    client.destroy();
    listener.destroy();
  }
}

/** A placeholder for the connection. Nothing is ever read from or written to it. */
function socketOf({ secure, peer }: DryRunRequest): Socket {
  const socket = secure ? new TLSSocket(new Socket()) : new Socket();
  setPeerAddress(socket, peer, 0);
  socket.destroy();
  return socket;
}

import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { ListenOptions, Socket } from "node:net";
import { createServer } from "../lib/http/node-http.ts";
import type { Arrival } from "./check-result.ts";

/** A backend that records what reaches it. It serves everything that parses as a request, left-over bytes included. */
export interface RecordingBackend extends AsyncDisposable {
  /** `127.0.0.1:8080`, or the path of a Unix socket. */
  readonly address: string;
  /**
   * Requests that arrived completely with this mark in their path, or asked for a key. Others, such as health checks,
   * are ignored.
   */
  arrivals(mark: string): readonly Arrival[];
  /** How often bytes arrived that are not HTTP. */
  unreadable(): number;
  /** Forgets what has arrived. */
  forget(): void;
}

/** Where a hostile token claims its key to be: a request for it shows that the token was believed. */
export const KEY_PATH = "/selftest-keys";

/** Part of the path of a request whose response carries hop-by-hop headers. */
export const ANSWER_WITH_HOPS = "answer-with-hops";

const LARGEST_HEAD = 256 * 1024;
const LARGEST_BODY = 1024 * 1024;

/** @throws what `listen` throws if the address is not available. */
export async function startRecordingBackend(where: ListenOptions): Promise<RecordingBackend> {
  const arrivals: Arrival[] = [];
  let unreadable = 0;
  const server = createServer({ requireHostHeader: false, maxHeaderSize: LARGEST_HEAD });
  server.maxHeadersCount = 0;
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    // An incomplete request has not arrived.
    record(request, arrivals).then(
      () => answer(request, response),
      () => response.destroy(),
    );
  };
  server.on("request", handle).on("checkExpectation", handle);
  server.on("connect", (request: IncomingMessage, socket: Socket) => {
    arrivals.push(arrivalOf(request, ""));
    socket.destroy();
  });
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    const { code = "" } = error;
    // A connection that ends within a request belongs to a request that was refused on the way.
    if (code.startsWith("HPE_") && code !== "HPE_INVALID_EOF_STATE") unreadable += 1;
    socket.destroy();
  });
  server.listen(where);
  await once(server, "listening");
  return {
    address: addressOf(server),
    arrivals: (mark) =>
      arrivals.filter(({ url }) => url.includes(mark) || url.startsWith(KEY_PATH)),
    unreadable: () => unreadable,
    forget: () => void arrivals.splice(0),
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function record(request: IncomingMessage, arrivals: Arrival[]): Promise<void> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    const bytes: Buffer = chunk;
    length += bytes.length;
    if (length > LARGEST_BODY) throw new Error("the body is too large");
    chunks.push(bytes);
  }
  arrivals.push(arrivalOf(request, Buffer.concat(chunks).toString("latin1")));
}

function arrivalOf(request: IncomingMessage, body: string): Arrival {
  const { method = "", url = "", rawHeaders, rawTrailers } = request;
  return { method, url, fields: pairs([...rawHeaders, ...rawTrailers]), body };
}

/** Returns an alternating list of names and values as pairs. */
export function pairs(list: readonly string[]): (readonly [string, string])[] {
  return list.flatMap((name, i) => (i % 2 === 0 ? [[name, list[i + 1] ?? ""] as const] : []));
}

/** Echoes the path, so that a response that goes to the wrong client is detected. */
function answer({ method, url = "" }: IncomingMessage, response: ServerResponse): void {
  response.setHeader("Content-Type", "application/json");
  if (url.includes(ANSWER_WITH_HOPS)) {
    response.setHeader("Connection", "X-Selftest-Hop, keep-alive");
    response.setHeader("X-Selftest-Hop", "leaked");
    response.setHeader("Keep-Alive", "timeout=4711");
    response.setHeader("Proxy-Authenticate", "Basic realm=leaked");
  }
  response.end(JSON.stringify({ method, url }));
}

function addressOf(server: Server): string {
  const address = server.address();
  if (address === null || typeof address === "string") return address ?? "";
  const { address: host, port } = address;
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

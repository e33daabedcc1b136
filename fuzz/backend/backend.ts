import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { listeningPort } from "../../test/support/listening-port.ts";
import { valuesOf } from "../wire/head.ts";
import { type ReadRequest, readRequests } from "../wire/requests.ts";
import { type Arrival, Arrivals } from "./arrivals.ts";

export interface Backend extends AsyncDisposable {
  readonly url: string;
  readonly arrivals: Arrivals;
}

/** How long some answers take, in milliseconds, so that data after a request arrives while the request is in progress. */
const SLOW_MS = 5;

/** The field with the number of the arrival that an answer belongs to. */
export const ANSWER_FIELD = "X-Fuzz-Answer";

/** Starts a backend that parses each connection strictly, records what arrived, and answers everything that is a request. */
export async function startBackend(): Promise<Backend> {
  const arrivals = new Arrivals();
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    new Connection(socket, arrivals);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${listeningPort(server)}`,
    arrivals,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

class Connection {
  readonly #socket: Socket;
  readonly #arrivals: Arrivals;
  #unread = "";
  /** The request whose body is still arriving. */
  #begun: Arrival | undefined;
  #switched: Arrival | undefined;

  constructor(socket: Socket, arrivals: Arrivals) {
    this.#socket = socket;
    this.#arrivals = arrivals;
    socket.on("data", (bytes: Buffer) => this.#take(bytes.toString("latin1")));
    socket.on("error", () => socket.destroy());
  }

  #take(text: string): void {
    if (this.#switched !== undefined) {
      this.#tunnelled(this.#switched, text);
      return;
    }
    const { requests, begun, stop, rest } = readRequests(this.#unread + text);
    this.#unread = rest;
    for (const request of requests) this.#answer(this.#arrived(request));
    if (begun !== undefined) this.#begun = this.#arrived(begun);
    if (this.#switched !== undefined) this.#tunnelled(this.#switched, rest);
    else if (stop === "unclear") this.#refuse(rest);
  }

  #arrived(request: ReadRequest): Arrival {
    const arrival = this.#begun ?? this.#arrivals.add(request);
    this.#begun = undefined;
    arrival.request = request;
    return arrival;
  }

  #tunnelled(arrival: Arrival, text: string): void {
    arrival.tunnel = `${arrival.tunnel ?? ""}${text}`;
    this.#socket.write(text, "latin1");
  }

  #refuse(rest: string): void {
    this.#arrivals.broken.push(rest.slice(0, 500));
    this.#socket.end("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  }

  #answer(arrival: Arrival): void {
    const { request, number } = arrival;
    const accept = request.switches ? switchKey(request) : undefined;
    const { interim, fields } = this.#arrivals.styleFor(request);
    if (accept === undefined) {
      const answer = Buffer.from(
        interim + ordinaryAnswer(request.method, number, fields),
        "latin1",
      );
      if (isSlow(request)) setTimeout(() => this.#socket.write(answer), SLOW_MS);
      else this.#socket.write(answer);
      return;
    }
    this.#switched = arrival;
    arrival.tunnel = "";
    const lines = ["Upgrade: websocket", "Connection: Upgrade", `Sec-WebSocket-Accept: ${accept}`];
    this.#socket.write(
      `HTTP/1.1 101 Switching Protocols\r\n${lines.join("\r\n")}\r\n${fields}${ANSWER_FIELD}: ${number}\r\n\r\n`,
      "latin1",
    );
  }
}

/** Returns the key that accepts a WebSocket handshake (RFC 6455 §4.2.2); undefined if this backend refuses it. */
function switchKey({ fields, target }: ReadRequest): string | undefined {
  const [key] = valuesOf(fields, "sec-websocket-key");
  if (key === undefined || target.includes("refuse")) return undefined;
  return createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
}

/** Whether the answer is slow: depends only on the request, so that a case is repeatable. */
function isSlow({ target, fields }: ReadRequest): boolean {
  return (target.length + fields.length) % 3 === 0;
}

/** Returns a 200 with a length or in chunks, or a 204. */
function ordinaryAnswer(method: string, number: number, fields: string): string {
  const body = `answer ${number}`;
  const field = `${fields}${ANSWER_FIELD}: ${number}`;
  if (number % 7 === 0) return `HTTP/1.1 204 No Content\r\n${field}\r\n\r\n`;
  if (number % 3 === 0 && method !== "HEAD") {
    const chunk = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    return `HTTP/1.1 200 OK\r\n${field}\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`;
  }
  const shown = method === "HEAD" ? "" : body;
  return `HTTP/1.1 200 OK\r\n${field}\r\nContent-Length: ${body.length}\r\n\r\n${shown}`;
}

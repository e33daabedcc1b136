import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { listeningPort } from "./listening-port.ts";
import { readMessages, type HttpMessage } from "./http-reader.ts";

interface RawConnection {
  /** The exact bytes that arrived. */
  readonly received: () => Buffer;
  /** The requests that a strict HTTP/1.1 reader finds in these bytes. */
  readonly requests: readonly HttpMessage[];
  /** The number of requests so far, including forgotten ones. */
  readonly served: number;
  readonly socket: Socket;
}

/**
 * What the backend does for one request: nothing (`hang`), write these exact bytes and then perhaps close or reset, or
 * write them byte by byte, `everyMs` milliseconds apart.
 */
type RawAnswer =
  | "hang"
  | { readonly write: string | Buffer; readonly then?: "close" | "reset" }
  | { readonly write: string | Buffer; readonly everyMs: number };

export type RawScript = (request: HttpMessage, connection: RawConnection) => RawAnswer;

export interface RawBackend extends AsyncDisposable {
  readonly url: string;
  readonly connections: readonly RawConnection[];
  /** The requests of all connections in the order of arrival, as a strict reader sees them: leftover bytes count as requests. */
  requests(): HttpMessage[];
  /** `GET /path` for each of them. */
  seen(): string[];
  /** Forgets all requests so far, but keeps the connections open. */
  forget(): void;
  /** Answers as this script says from now on; 200 without one. */
  answerWith(script: RawScript | undefined): void;
  close(): Promise<void>;
}

const OK: RawAnswer = { write: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" };
const SERVE: RawScript = () => OK;

/**
 * Starts a backend that executes anything that reads like a request, even leftover bytes. Answers 200 unless scripted.
 */
export async function startRawBackend(script?: RawScript): Promise<RawBackend> {
  let answer = script ?? SERVE;
  const connections: Recorder[] = [];
  let arrived: HttpMessage[] = [];
  const server = createServer((socket) => {
    const scripted: RawScript = (request, connection) => {
      arrived.push(request);
      return answer(request, connection);
    };
    connections.push(new Recorder(socket, scripted));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = async (): Promise<void> => {
    for (const { socket } of connections) {
      socket.destroy();
    }
    server.close();
    await once(server, "close");
  };
  const requests = (): HttpMessage[] => [...arrived];
  return {
    url: `http://127.0.0.1:${listeningPort(server)}`,
    connections,
    requests,
    seen: () => requests().map(({ startLine }) => startLine.replace(/ HTTP\/1\.[01]$/, "")),
    forget() {
      arrived = [];
      for (const connection of connections) {
        connection.forget();
      }
    },
    answerWith: (next) => void (answer = next ?? SERVE),
    close,
    [Symbol.asyncDispose]: close,
  };
}

class Recorder implements RawConnection {
  readonly socket: Socket;
  readonly #script: RawScript;
  readonly #chunks: Buffer[] = [];
  #unread: Buffer = Buffer.alloc(0);
  requests: HttpMessage[] = [];
  served = 0;

  constructor(socket: Socket, script: RawScript) {
    this.socket = socket;
    this.#script = script;
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", () => socket.destroy());
  }

  received(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  forget(): void {
    this.requests = [];
    this.#chunks.length = 0;
  }

  #take(chunk: Buffer): void {
    this.#chunks.push(chunk);
    const { messages, rest, broken } = readMessages(
      "request",
      Buffer.concat([this.#unread, chunk]),
    );
    this.#unread = rest;
    for (const request of messages) {
      this.requests.push(request);
      this.served += 1;
      this.#answer(this.#script(request, this));
    }
    if (broken !== undefined) {
      this.socket.end("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
  }

  #answer(answer: RawAnswer): void {
    if (answer === "hang" || this.socket.destroyed) {
      return;
    }
    const bytes =
      typeof answer.write === "string" ? Buffer.from(answer.write, "latin1") : answer.write;
    if ("everyMs" in answer) {
      this.#dribble(bytes, answer.everyMs);
      return;
    }
    this.socket.write(bytes, () => {
      if (answer.then === "reset") {
        this.socket.resetAndDestroy();
      } else if (answer.then === "close") {
        this.socket.end();
      }
    });
  }

  #dribble(bytes: Buffer, everyMs: number): void {
    let sent = 0;
    const timer = setInterval(() => {
      this.socket.write(bytes.subarray(sent, sent + 1));
      sent += 1;
      if (sent === bytes.length) clearInterval(timer);
    }, everyMs);
    this.socket.on("close", () => clearInterval(timer));
  }
}

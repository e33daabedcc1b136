import { Agent, request as httpsRequest } from "node:https";
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { OUR_IDS, type Asked, type Got } from "../accounts/asked.ts";
import { envelopeId } from "./envelope.ts";

/** Where requests go, and who is notified of them. */
export interface Place {
  readonly port: number;
  /** The authority that issued Sallyport's certificate, PEM. */
  readonly ca: string;
  readonly asked: (asked: Asked) => void;
}

export interface Question {
  readonly method?: string;
  readonly path: string;
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent with its length. */
  readonly body?: string | Buffer;
  /** Whether it uses a new connection, which is closed after the answer. */
  readonly alone?: boolean;
  /** The status codes that are right. */
  readonly right: readonly number[];
  /** Returns why the answer is wrong; undefined if it is right. Called only for an expected status. */
  readonly check?: (answer: Answer) => string | undefined;
  /** Sends the body, if it is not to be sent at once. */
  readonly send?: (sent: ClientRequest) => void;
  /** Reads the body, if it is not to be read at once. */
  readonly read?: (response: IncomingMessage) => Promise<Buffer>;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The `X-Request-Id` of the request. */
  readonly requestId: string;
}

/** The maximum time without progress of an answer, in milliseconds: Sallyport's own limits are at most 10 seconds. */
const PATIENCE_MS = 30_000;

/** Sends requests the way ordinary clients do, over keep-alive connections, and reports each to the ledger. */
export class Client {
  readonly place: Place;
  readonly #agent: Agent;
  /** The last request on each connection, which may explain why the next one is lost. */
  readonly #lastOn = new WeakMap<object, string>();
  #count = 0;

  constructor(place: Place) {
    this.place = place;
    // Idle connections are closed long before Sallyport would close them, so that the two cannot race.
    this.#agent = new Agent({
      keepAlive: true,
      maxSockets: 64,
      timeout: PATIENCE_MS,
      ca: place.ca,
    });
  }

  /** Returns a unique request id. */
  nextId(): string {
    this.#count += 1;
    return `${OUR_IDS}${this.#count}`;
  }

  /** Sends a request. Never rejects: failures are reported to the ledger. Undefined without a complete answer. */
  async ask(kind: string, question: Question): Promise<Answer | undefined> {
    const { right } = question;
    const id = this.nextId();
    const startedMs = performance.now();
    let got: Got;
    let answer: Answer | undefined;
    try {
      answer = await this.#exchange(id, question);
      got = gotFrom(answer, question);
    } catch (error) {
      got = { what: "broke", why: error instanceof Error ? error.message : String(error) };
    }
    this.place.asked({ id, kind, startedMs, endedMs: performance.now(), right, got });
    return answer;
  }

  /** Begins a request; the caller sends the body, reads the answer, and reports it to the ledger. */
  begin(id: string, question: Omit<Question, "right">): ClientRequest {
    const { method = "GET", path, token, headers = {}, body, alone = false } = question;
    const { port, ca } = this.place;
    return httpsRequest({
      host: "127.0.0.1",
      port,
      ca,
      path,
      method,
      agent: alone ? false : this.#agent,
      headers: {
        "x-request-id": id,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) }),
        ...headers,
      },
    });
  }

  /** Closes idle connections. */
  close(): void {
    this.#agent.destroy();
  }

  async #exchange(id: string, question: Question): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const { read = buffer, send = (sent) => sent.end(question.body) } = question;
    const sent = this.begin(id, question);
    sent.setTimeout(PATIENCE_MS, () => sent.destroy(new Error("the answer has stalled")));
    let before: string | undefined;
    sent.on("socket", (socket) => {
      before = this.#lastOn.get(socket);
      this.#lastOn.set(socket, `${question.method ?? "GET"} ${question.path} ${id}`);
    });
    const broke = (error: Error): void => {
      const where = before === undefined ? "on a new connection" : `on the connection of ${before}`;
      reject(new Error(`${error.message}, ${where}`));
    };
    sent.on("error", broke);
    sent.on("response", (response) => {
      const { statusCode: status = 0, headers } = response;
      read(response).then((body) => resolve({ status, headers, body, requestId: id }), broke);
    });
    send(sent);
    return promise;
  }
}

function gotFrom(answer: Answer, { right, check }: Question): Got {
  const { status } = answer;
  const own = answer.headers["x-soak-backend"] === undefined;
  const id = own ? envelopeId(answer) : undefined;
  const unenveloped = own && id === undefined ? "its envelope is broken" : undefined;
  const wrong = right.includes(status) ? check?.(answer) : undefined;
  return { what: "answer", status, envelopeId: id, fault: unenveloped ?? wrong };
}

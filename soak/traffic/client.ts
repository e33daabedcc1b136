import { Agent, request as httpsRequest } from "node:https";
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { OUR_IDS, type Asked, type Got } from "../accounts/asked.ts";
import { envelopeId } from "./envelope.ts";

/** Where requests go, and who is told of them. */
export interface Place {
  readonly port: number;
  /** The authority of Sallyport's certificate, PEM. */
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
  /** A connection of its own, closed after the answer. */
  readonly alone?: boolean;
  /** The status codes that are right. */
  readonly right: readonly number[];
  /** Why the answer is wrong; undefined when it is right. Asked only for a right status. */
  readonly check?: (answer: Answer) => string | undefined;
  /** Sends the body itself, where it is not simply sent. */
  readonly send?: (sent: ClientRequest) => void;
  /** Reads the body itself. */
  readonly read?: (response: IncomingMessage) => Promise<Buffer>;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The `X-Request-Id` of the request. */
  readonly requestId: string;
}

/** Longer than an answer may stand still, in milliseconds: Sallyport's own limits are 10 seconds at most. */
const PATIENCE_MS = 30_000;

/** Asks as ordinary clients do, over kept-alive connections, and tells the ledger of every request. */
export class Client {
  readonly place: Place;
  readonly #agent: Agent;
  /** The last request on each connection: what a lost one may have to do with. */
  readonly #lastOn = new WeakMap<object, string>();
  #count = 0;

  constructor(place: Place) {
    this.place = place;
    // An idle connection is let go of long before Sallyport would end it: who is first is no question then.
    this.#agent = new Agent({
      keepAlive: true,
      maxSockets: 64,
      timeout: PATIENCE_MS,
      ca: place.ca,
    });
  }

  /** A request id that nobody else has. */
  nextId(): string {
    this.#count += 1;
    return `${OUR_IDS}${this.#count}`;
  }

  /** Never rejects: what goes wrong is told to the ledger. Undefined when there was no whole answer. */
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

  /** A request with the head of the question; the caller sends the body, reads the answer, and tells the ledger. */
  begin(id: string, question: Omit<Question, "right">): ClientRequest {
    const { method = "GET", path, token, headers = {}, body, alone = false } = question;
    const { port, ca } = this.place;
    return httpsRequest({
      host: "127.0.0.1",
      ...{ port, ca, path, method },
      agent: alone ? false : this.#agent,
      headers: {
        "x-request-id": id,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) }),
        ...headers,
      },
    });
  }

  /** Ends the connections on which nothing runs. */
  close(): void {
    this.#agent.destroy();
  }

  async #exchange(id: string, question: Question): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const { read = buffer, send = (sent) => sent.end(question.body) } = question;
    const sent = this.begin(id, question);
    sent.setTimeout(PATIENCE_MS, () => sent.destroy(new Error("the answer stands still")));
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

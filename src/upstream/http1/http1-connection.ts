import type { Socket } from "node:net";
import { TimeoutEntry } from "../../lib/async/timeout-list.ts";
import { startReading, stopReading } from "../../lib/node-internals/node-sockets.ts";
import type { AnswerHandler, BackendRequest, Connection } from "../http/connection.ts";
import { atEndOfTurn, type TurnTask } from "../../lib/async/end-of-turn.ts";
import { threadScavenger } from "../http/scavenger.ts";
import { RequestBody } from "../http/request-body.ts";
import { Assignment } from "./assignment.ts";
import { connectTo, type Route } from "./connect.ts";
import { asError, ConnectionLost, UnexpectedBytes } from "./faults.ts";
import { headersOf } from "../http/field-map.ts";
import { ReadBuffer } from "./read-buffer.ts";
import { BodyWriter, mayReuseAfter, requestHead } from "./request-writer.ts";
import { type ResponseEvents, ResponseParser } from "./response-parser.ts";

/** The maximum size of a response header section, in bytes. */
const MAX_HEADER_BYTES = 64 * 1024;

/** The pool that a connection belongs to. */
interface Owner {
  unwritten(assignment: Assignment, error: Error, wasUsed: boolean): void;
  released(connection: Http1Connection, hint: string | undefined): void;
  left(connection: Http1Connection): void;
}

/**
 * One connection to a backend, which carries one request at a time. Unsolicited bytes close it: otherwise they
 * would be read as the response to the next request.
 */
export class Http1Connection extends TimeoutEntry implements Connection, ResponseEvents, TurnTask {
  readonly socket: Socket;
  readonly #owner: Owner;
  readonly #parser: ResponseParser;
  readonly #scavenger = threadScavenger();
  readonly #buffer = new ReadBuffer();
  #current: Assignment | undefined;
  #connected = false;
  #closed = false;
  #used = false;
  #paused = false;
  #sender: BodyWriter | undefined;
  /** The parts of the body in this read: views of the buffer. */
  #parts: Buffer[] = [];
  #keepAlive = false;
  #hint: string | undefined;

  constructor(route: Route, owner: Owner) {
    super();
    this.#owner = owner;
    this.#parser = new ResponseParser(this, MAX_HEADER_BYTES);
    const onread = {
      buffer: () => this.#buffer.next(),
      callback: (bytes: number, into: Uint8Array) => this.#read(bytes, into),
    };
    this.socket = connectTo(route, onread, () => this.#onConnect())
      .on("error", (error) => this.fail(error))
      .on("end", () => this.#onEof())
      .on("close", () => this.fail(new ConnectionLost()));
  }

  /** Sends a request at the end of the turn, or once the connection is open. */
  dispatch(request: BackendRequest, handler: AnswerHandler): void {
    this.list?.cancel(this);
    this.#current = new Assignment(request, handler, this);
    handler.onConnection(this);
    // Until the end of the turn, bytes that arrived before the request are read: they cannot be the response to it.
    if (this.#connected) atEndOfTurn(this);
  }

  begin(): boolean {
    const before = this.#used;
    this.#used = true;
    return before;
  }

  get writableNeedDrain(): boolean {
    return this.socket.writableNeedDrain;
  }

  /** Ends the connection and its request. If the request was not written yet, another connection sends it. */
  fail(error: Error): void {
    if (this.#closed) return;
    this.#closed = true;
    const current = this.#detach();
    this.list?.cancel(this);
    this.#owner.left(this);
    this.socket.destroy();
    // The parser may be running.
    setImmediate(() => this.#parser.close());
    if (current === undefined) return;
    if (current.isWritten) current.handler.onResponseError(current, error);
    else this.#owner.unwritten(current, error, this.#used);
  }

  /** Ends an idle connection. */
  close(): void {
    this.fail(new ConnectionLost());
  }

  /** Called when it was idle for too long. */
  override onTimeout(): void {
    this.close();
  }

  pause(): void {
    this.#paused = true;
    stopReading(this.socket);
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    startReading(this.socket);
  }

  #onConnect(): void {
    this.#connected = true;
    this.runAtEndOfTurn();
  }

  runAtEndOfTurn(): void {
    const current = this.#current;
    if (current === undefined || current.isWritten || this.#closed) return;
    current.isWritten = true;
    try {
      current.handler.onRequestStart(current);
      if (current.connection !== undefined) this.#write(current);
    } catch (error) {
      this.fail(asError(error));
    }
  }

  #write({ request, handler }: Assignment): void {
    const { body } = request;
    const { text: head, chunked } = requestHead(request);
    const { socket } = this;
    this.#keepAlive = mayReuseAfter(request);
    if (body instanceof RequestBody) {
      socket.write(head, "latin1");
      this.#sender = new BodyWriter(socket, body, chunked, {
        onBodySent: () => handler.onBodySent(),
        onRequestSent: () => this.#onSent(handler),
        onBodyError: (error) => this.fail(error),
      });
      return;
    }
    if (body instanceof Buffer) {
      socket.cork();
      socket.write(head, "latin1");
      socket.write(body);
      socket.uncork();
      handler.onBodySent();
    } else socket.write(head, "latin1");
    handler.onRequestSent();
  }

  #onSent(handler: AnswerHandler): void {
    this.#sender = undefined;
    handler.onRequestSent();
  }

  /** @returns whether more may be read. */
  #read(bytes: number, into: Uint8Array): boolean {
    if (this.#closed) return false;
    try {
      const current = this.#current;
      if (current?.isWritten !== true) throw new UnexpectedBytes();
      if (!current.isAnswered) {
        current.isAnswered = true;
        current.handler.onResponseStarted();
      }
      this.#parser.read(this.#buffer.filled(bytes, into));
      this.#passBody();
      this.#scavenger.count(bytes);
    } catch (error) {
      this.fail(asError(error));
    }
    return !this.#paused;
  }

  #onEof(): void {
    if (this.#closed) return;
    try {
      this.#parser.finish();
    } catch {
      // The response is incomplete.
    }
    this.fail(new ConnectionLost());
  }

  onBegin(): void {
    if (this.#current?.isWritten !== true) throw new UnexpectedBytes();
  }

  onHead(
    status: number,
    statusMessage: string,
    fields: readonly string[],
    keepAlive: boolean,
  ): boolean {
    const current = this.#current;
    if (current === undefined) throw new UnexpectedBytes();
    const headers = headersOf(fields);
    if (status >= 200) {
      this.#keepAlive &&= keepAlive;
      const hint = headers["keep-alive"];
      this.#hint = typeof hint === "string" ? hint : undefined;
    }
    current.handler.onResponseStart(current, status, headers, statusMessage);
    return current.request.method === "HEAD";
  }

  onBody(part: Buffer): void {
    this.#parts.push(part);
  }

  onEnd(trailers: readonly string[]): void {
    this.#passBody();
    // A backend that responds before the end of the body may not read the rest.
    const reusable = this.#keepAlive && this.#sender === undefined;
    const current = this.#detach();
    if (this.#closed || current === undefined) return;
    if (this.#paused) this.resume();
    this.#buffer.share();
    if (reusable) this.#owner.released(this, this.#hint);
    else this.close();
    current.handler.onResponseEnd(current, headersOf(trailers));
  }

  /** Passes on the parts of the body in this read. */
  #passBody(): void {
    const parts = this.#parts;
    const [first] = parts;
    if (first === undefined) return;
    this.#parts = [];
    const current = this.#current;
    const content = parts.length === 1 ? this.#buffer.retain(first) : Buffer.concat(parts);
    current?.handler.onResponseData(current, content);
  }

  #detach(): Assignment | undefined {
    const current = this.#current;
    this.#current = undefined;
    this.#sender?.stop();
    this.#sender = undefined;
    if (current !== undefined) current.connection = undefined;
    return current;
  }
}

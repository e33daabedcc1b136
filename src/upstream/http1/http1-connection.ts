import type { Socket } from "node:net";
import { TimeoutEntry } from "../../lib/async/timeout-list.ts";
import { startReading, stopReading } from "../../lib/node-internals/node-sockets.ts";
import type {
  AnswerHandler,
  BackendRequest,
  Connection,
  RequestControl,
} from "../http/connection.ts";
import { atEndOfTurn, type TurnTask } from "../../lib/async/end-of-turn.ts";
import { countGarbage } from "../http/scavenger.ts";
import { RequestBody } from "../http/client-body.ts";
import { connectTo, type Route } from "./connect.ts";
import type { Http1Pool } from "./http1-pool.ts";
import { headersOf } from "../headers/incoming-headers.ts";
import { BodyWriter, READ_BUFFER, requestHead, ResponseParser } from "./response-parser.ts";
import { asError, BackendFault } from "../http/failures.ts";

/** The maximum size of a response header section, in bytes. */
const MAX_HEADER_BYTES = 64 * 1024;

/**
 * One connection to a backend, which carries one request at a time. Unsolicited bytes close it: otherwise they
 * would be read as the response to the next request.
 */
export class Http1Connection extends TimeoutEntry implements Connection, TurnTask {
  readonly socket: Socket;
  readonly #pool: Http1Pool;
  readonly #parser: ResponseParser;
  #current: Assignment | undefined;
  #connected = false;
  #closed = false;
  #used = false;
  #paused = false;
  #sender: BodyWriter | undefined;
  #keepAlive = false;
  /** What the backend announced in `Keep-Alive`. */
  #hint = "";

  constructor(route: Route, pool: Http1Pool) {
    super();
    this.#pool = pool;
    this.#parser = new ResponseParser(this, MAX_HEADER_BYTES);
    const onread = {
      buffer: READ_BUFFER,
      callback: (bytes: number) => this.#read(bytes),
    };
    this.socket = connectTo(route, onread, () => this.#onConnect())
      .on("error", (error) => this.fail(error))
      .on("end", () => this.#onEof())
      .on("close", () => this.fail(new BackendFault("connection_lost")));
  }

  /** Sends a request at the end of the turn, or once the connection is open. */
  dispatch(request: BackendRequest, handler: AnswerHandler): void {
    this.list?.cancel(this);
    this.#current = new Assignment(request, handler, this);
    handler.onConnection?.(this);
    // Until the end of the turn, bytes that arrived before the request are read: they cannot be the response to it.
    if (this.#connected) atEndOfTurn(this);
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
    this.#pool.left(this);
    this.socket.destroy();
    // The parser may be running.
    setImmediate(() => this.#parser.close());
    if (current === undefined) return;
    if (current.isWritten) current.handler.onResponseError(error);
    else this.#pool.unwritten(current, error, this.#used);
  }

  /** Ends an idle connection. */
  close(): void {
    this.fail(new BackendFault("connection_lost"));
  }

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
      current.handler.onRequestStart(current, this.#used);
      if (current.connection === undefined) return;
      this.#used = true;
      this.#write(current);
    } catch (error) {
      this.fail(asError(error));
    }
  }

  #write({ request, handler }: Assignment): void {
    const { body } = request;
    const { text: head, chunked, keepAlive } = requestHead(request);
    const { socket } = this;
    this.#keepAlive = keepAlive;
    if (body instanceof RequestBody) {
      socket.write(head, "latin1");
      this.#sender = new BodyWriter(socket, body, chunked, {
        onBodySent: () => handler.onBodySent?.(),
        onRequestSent: () => {
          this.#sender = undefined;
          handler.onRequestSent?.();
        },
        onBodyError: (error) => this.fail(error),
      });
      return;
    }
    if (body instanceof Buffer) {
      socket.cork();
      socket.write(head, "latin1");
      socket.write(body);
      socket.uncork();
      handler.onBodySent?.();
    } else socket.write(head, "latin1");
    handler.onRequestSent?.();
  }

  /** @returns whether more may be read. */
  #read(bytes: number): boolean {
    if (this.#closed) return false;
    try {
      const current = this.#current;
      if (current?.isWritten !== true) throw new BackendFault("unexpected_bytes");
      current.handler.onResponseStarted?.();
      this.#parser.read(bytes);
      countGarbage(bytes);
    } catch (error) {
      this.fail(asError(error));
    }
    return !this.#paused;
  }

  #onEof(): void {
    if (this.#closed) return;
    this.#parser.finish();
    this.fail(new BackendFault("connection_lost"));
  }

  /** A message begins, even if no request waits for one. */
  onBegin(): void {
    if (this.#current?.isWritten !== true) throw new BackendFault("unexpected_bytes");
  }

  /** @param fields names and values, alternating, in Latin-1. @returns whether the response has no body, whatever its fields say. */
  onHead(
    status: number,
    statusMessage: string,
    fields: readonly string[],
    keepAlive: boolean,
  ): boolean {
    const current = this.#current;
    if (current === undefined) throw new BackendFault("unexpected_bytes");
    const headers = headersOf(fields);
    if (status >= 200) {
      this.#keepAlive &&= keepAlive;
      const hint = headers["keep-alive"];
      this.#hint = typeof hint === "string" ? hint : "";
    }
    current.handler.onResponseStart(status, headers, statusMessage);
    return current.request.method === "HEAD";
  }

  /** The part of the body in one read. */
  onBody(content: Buffer): void {
    this.#current?.handler.onResponseData(content);
  }

  /** The end of a response that is not interim. @param trailers names and values, alternating; undefined if there are none. */
  onEnd(trailers: readonly string[] | undefined): void {
    // A backend that responds before the end of the body may not read the rest.
    const reusable = this.#keepAlive && this.#sender === undefined;
    const current = this.#detach();
    if (this.#closed || current === undefined) return;
    if (this.#paused) this.resume();
    if (reusable) this.#pool.released(this, this.#hint);
    else this.close();
    current.handler.onResponseEnd(trailers && headersOf(trailers));
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

/** A request on a connection. When it has ended, its handler cannot affect the later ones. */
export class Assignment implements RequestControl {
  readonly request: BackendRequest;
  readonly handler: AnswerHandler;
  /** Undefined when the request has ended. */
  connection: Http1Connection | undefined;
  /** Whether the request has begun to be written. */
  isWritten = false;

  constructor(request: BackendRequest, handler: AnswerHandler, connection: Http1Connection) {
    this.request = request;
    this.handler = handler;
    this.connection = connection;
  }

  abort(error: Error): void {
    this.connection?.fail(error);
  }

  pause(): void {
    this.connection?.pause();
  }

  resume(): void {
    this.connection?.resume();
  }
}

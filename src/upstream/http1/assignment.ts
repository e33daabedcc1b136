import type { AnswerHandler, BackendRequest, RequestControl } from "../http/connection.ts";

/** The operations of a request on its connection. */
interface Carrier {
  /** Ends the connection and the request. */
  fail(error: Error): void;
  pause(): void;
  resume(): void;
}

/** A request that was assigned to a connection. */
export class Assignment implements RequestControl {
  readonly request: BackendRequest;
  readonly handler: AnswerHandler;
  /** Undefined when the request has ended, so that its handler cannot affect later requests. */
  connection: Carrier | undefined;
  /** Whether the request has begun to be written. */
  isWritten = false;
  /** Whether a byte of its response has arrived. */
  isAnswered = false;

  constructor(request: BackendRequest, handler: AnswerHandler, connection: Carrier) {
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

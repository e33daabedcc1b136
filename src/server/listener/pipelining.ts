import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { BufferedBytes } from "./connection-ledger.ts";
import type { ClientReading } from "./reading/fair-reading.ts";
import type { BufferHolder } from "../../core/request/transfer.ts";
import { DeferredQueue } from "../../lib/async/end-of-turn.ts";
import type { TrackedResponse } from "../request/tracked-response.ts";

/**
 * Pauses and resumes reading from a client. A plain `socket.pause()` does not last: Node resumes the socket when
 * someone reads a body or a response is finished. Neither stops what has been read already: the rest of a read, at
 * most 64 KiB, is still parsed.
 */
class ReadPause {
  readonly #socket: Socket;
  #paused = false;
  #listening = false;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  pause(): void {
    this.#paused = true;
    if (!this.#listening) this.#socket.on("resume", this.#onResume);
    this.#listening = true;
    this.#socket.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#socket.resume();
  }

  /** Node's own listener has resumed reading, and no data has arrived yet. */
  readonly #onResume = (): void => {
    if (this.#paused) this.#socket.pause();
  };
}

type OnRequest = (request: IncomingMessage, response: TrackedResponse) => void;

export interface PipeliningOptions {
  /** Handles each request in its turn; never throws or rejects. */
  readonly handler: { handle(request: IncomingMessage, response: TrackedResponse): unknown };
  /** Called for each connection that is closed for exceeding a limit. */
  readonly refused: () => void;
  readonly buffered: BufferedBytes;
  readonly reading: Pick<ClientReading, "charge">;
  /** The limits for one connection. */
  readonly limits?: PipeliningLimits;
}

/** The limits on what may be queued on one connection. */
interface PipeliningLimits {
  /** Maximum number of requests that wait for earlier responses. */
  readonly requests: number;
  /** Maximum number of all their header names and values. */
  readonly strings: number;
}

/** A hundred requests with twenty fields each. */
const DEFAULT_LIMITS: PipeliningLimits = { requests: 100, strings: 4_000 };
/** Memory of queued requests, in bytes, beyond which reading from the client pauses. */
const MAX_QUEUED_BYTES = 64 * 1024;
/** Queued requests that start per turn of the event loop: a millisecond of work, including responses. */
const PER_TURN = 4;
/** Memory of a parsed request and its response without text, and of each name and value, in bytes. */
const REQUEST_BYTES = 3_000;
const STRING_BYTES = 24;

/** The requests queued on one connection. */
class PipelinedRequests implements BufferHolder {
  requests = 0;
  strings = 0;
  readonly reading: ReadPause;
  #headBytes = 0;
  /** Only the last one can have a body that is still arriving. */
  #last: IncomingMessage | undefined;

  constructor(socket: Socket) {
    this.reading = new ReadPause(socket);
  }

  get bufferedBytes(): number {
    return this.#headBytes + (this.#last?.readableLength ?? 0);
  }

  /** Adds a request and returns the memory of its head, to pass to `remove`. */
  add(request: IncomingMessage): number {
    const bytes = headBytesOf(request);
    this.requests += 1;
    this.strings += request.rawHeaders.length;
    this.#headBytes += bytes;
    this.#last = request;
    return bytes;
  }

  remove(request: IncomingMessage, bytes: number): void {
    this.requests -= 1;
    this.strings -= request.rawHeaders.length;
    this.#headBytes -= bytes;
    if (this.#last === request) this.#last = undefined;
  }
}

/**
 * Starts the requests of a connection one at a time. Node emits all pipelined requests at once: their responses would be
 * buffered for a client that may never read them, and the second of two requests with side effects could reach the backend
 * first (RFC 9112 §9.3.2). Reading pauses while queued requests exceed their share of memory, and their number is bounded.
 *
 * A few start per turn of the event loop, over all connections, first in, first out: Node accepts one connection per turn,
 * so long turns would keep out new clients. A request that is queued alone starts at once: over TLS, clients that do not
 * pipeline send such requests, too, since they read a response before Node learns that it was written.
 */
export function serializePipelined({
  handler,
  refused,
  buffered,
  reading,
  limits = DEFAULT_LIMITS,
}: PipeliningOptions): OnRequest {
  const waiting = new WeakMap<Socket, PipelinedRequests>();
  const deferred = new DeferredQueue(PER_TURN);
  /** The bytes of queued requests up to which a connection is read. */
  const readable = (): number => (buffered.scarce ? 0 : MAX_QUEUED_BYTES);

  function queueOf(socket: Socket): PipelinedRequests {
    let queued = waiting.get(socket);
    if (queued === undefined) {
      queued = new PipelinedRequests(socket);
      waiting.set(socket, queued);
      buffered.track(socket, queued);
    }
    return queued;
  }

  function enqueue(request: IncomingMessage, response: TrackedResponse): void {
    const { socket } = request;
    const queued = queueOf(socket);
    const bytes = queued.add(request);
    if (queued.requests > limits.requests || queued.strings > limits.strings) {
      socket.destroy();
      refused();
      return;
    }
    if (queued.bufferedBytes > readable()) queued.reading.pause();
    // A single request is bounded by the limit on heads, and the next sweep of the budget counts it.
    if (queued.requests > 1) buffered.measure(socket);
    const proceed = (): void => {
      queued.remove(request, bytes);
      if (queued.bufferedBytes <= readable() / 2) queued.reading.resume();
      if (!socket.writableEnded && !socket.destroyed) handler.handle(request, response);
    };
    response.onTurn = () => {
      if (queued.requests === 1) proceed();
      else deferred.defer(proceed);
    };
  }

  return (request, response) => {
    const { socket } = request;
    reading.charge(socket);
    // Data after the last response is discarded.
    if (socket.writableEnded || socket.destroyed) return;
    buffered.touch(socket);
    // Otherwise an earlier response is still being written.
    if (response.socket !== null) handler.handle(request, response);
    else enqueue(request, response);
  };
}

/** Estimates the memory of a parsed head, in bytes. */
function headBytesOf({ rawHeaders, url }: IncomingMessage): number {
  let bytes = REQUEST_BYTES + (url?.length ?? 0);
  for (const text of rawHeaders) bytes += STRING_BYTES + text.length;
  return bytes;
}

import type { ServerHttp2Stream } from "node:http2";

/** Receives the events of a response's stream. */
interface ResponseListener {
  /** The client has taken what was written. */
  onDrain(): void;
  /** Everything before the trailers is written. */
  onWantTrailers(): void;
  /** The stream has closed. */
  onClose(): void;
}

/** The listener of a stream. All streams share the functions below, since closures for each would take time and memory. */
const LISTENER: unique symbol = Symbol("listener");

declare module "node:http2" {
  interface ServerHttp2Stream {
    [LISTENER]?: ResponseListener;
  }
}

/** Notifies a listener when a stream closes. */
export function listenTo(stream: ServerHttp2Stream, listener: ResponseListener): void {
  stream[LISTENER] = listener;
  stream.on("close", onClose);
}

/** Notifies it when a stream drains. Most streams never wait for the client. */
export function listenToDrain(stream: ServerHttp2Stream): void {
  stream.on("drain", onDrain);
}

/** Notifies it when a stream may send trailers. */
export function listenForTrailers(stream: ServerHttp2Stream): void {
  stream.on("wantTrailers", onWantTrailers);
}

function onClose(this: ServerHttp2Stream): void {
  this[LISTENER]?.onClose();
}

function onDrain(this: ServerHttp2Stream): void {
  this[LISTENER]?.onDrain();
}

function onWantTrailers(this: ServerHttp2Stream): void {
  this[LISTENER]?.onWantTrailers();
}

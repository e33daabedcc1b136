import type { ServerHttp2Stream } from "node:http2";

/** Told what happens on the stream of a response. */
interface ResponseListener {
  /** The client has taken what was written. */
  onDrain(): void;
  /** Everything before the trailers is written. */
  onWantTrailers(): void;
  /** The stream has closed. */
  onClose(): void;
}

/** Of a stream: who is told. The functions below are the same for all streams, since closures for each take time and memory. */
const LISTENER: unique symbol = Symbol("listener");

declare module "node:http2" {
  interface ServerHttp2Stream {
    [LISTENER]?: ResponseListener;
  }
}

/** Tells a listener when a stream closes. */
export function listenTo(stream: ServerHttp2Stream, listener: ResponseListener): void {
  stream[LISTENER] = listener;
  stream.on("close", onClose);
}

/** Tells it of a stream that has more to write than the client takes: most have not. */
export function listenToDrain(stream: ServerHttp2Stream): void {
  stream.on("drain", onDrain);
}

/** Tells it of a stream that may have trailers. */
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

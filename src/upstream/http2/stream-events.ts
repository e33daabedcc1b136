import type { ClientHttp2Stream } from "node:http2";
import { pushTo, replacePush } from "../../lib/node-internals/stream-push.ts";
import { asError } from "../http/faults.ts";

/** Receives the events of a stream. An exception that it throws aborts the request. */
interface StreamListener {
  /** Whether it ignores further events. */
  readonly isOver: boolean;
  /** Node queues a part of the answer, or null at its end. */
  added(stream: ClientHttp2Stream, part: Buffer | null): void;
  onHead(flags: number, raw: readonly string[]): void;
  onTrailers(raw: readonly string[]): void;
  onData(part: Buffer): void;
  onEnd(): void;
  /** The stream has closed, which may happen before its end. */
  onClose(): void;
  abort(error: Error): void;
}

/** The listener of a stream. All streams share the functions below, since closures for each would take time and memory. */
const LISTENER: unique symbol = Symbol("listener");

declare module "node:http2" {
  interface ClientHttp2Stream {
    [LISTENER]?: StreamListener;
  }
}

/** Passes all events of a stream to a listener, except the parts of its response. */
export function listenTo(stream: ClientHttp2Stream, listener: StreamListener): void {
  stream[LISTENER] = listener;
  replacePush(stream, pushCounted);
  stream.on("headers", onHead).on("response", onHead).on("trailers", onTrailers);
  stream.on("end", onEnd).on("error", onClose).on("close", onClose);
}

/** Passes on the parts of the response as they arrive. */
export function readFrom(stream: ClientHttp2Stream): void {
  stream.on("data", onData);
}

/** Replaces `push` of a stream. */
function pushCounted(
  this: ClientHttp2Stream,
  part: Buffer | null,
  encoding?: BufferEncoding,
): boolean {
  this[LISTENER]?.added(this, part);
  return pushTo(this, part, encoding);
}

const onHead = guarded((listener, _headers: unknown, flags: number, raw: string[]) =>
  listener.onHead(flags, raw),
);
const onTrailers = guarded((listener, _headers: unknown, _flags: number, raw: string[]) =>
  listener.onTrailers(raw),
);
const onData = guarded((listener, part: Buffer) => listener.onData(part));
const onEnd = guarded((listener) => listener.onEnd());

function guarded<Details extends unknown[]>(
  act: (listener: StreamListener, ...details: Details) => void,
) {
  return function (this: ClientHttp2Stream, ...details: Details): void {
    const listener = this[LISTENER];
    if (listener === undefined || listener.isOver) return;
    try {
      act(listener, ...details);
    } catch (error) {
      listener.abort(asError(error));
    }
  };
}

function onClose(this: ClientHttp2Stream): void {
  this[LISTENER]?.onClose();
}

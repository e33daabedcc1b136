import type { Server as HttpServer, ServerOptions, ServerResponse } from "node:http";
import { type Server, Socket } from "node:net";
import { type Duplex, Readable } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Takes the listeners of an event away from a server, those of Node included, which start to read a connection. Node has
 * no public way to delay or skip that.
 *
 * @returns a function that passes a connection on to them.
 */
export function takeListeners(
  server: Server,
  event: "connection" | "secureConnection",
): (socket: Socket) => void {
  const listeners = server.listeners(event);
  server.removeAllListeners(event);
  return (socket) => {
    for (const each of listeners) Reflect.apply(each, server, [socket]);
  };
}

/**
 * Changes options of an HTTP server for which Node has no setter. It reads `maxHeaderSize` when it starts to read a
 * connection, and `connectionsCheckingInterval`, in milliseconds, whenever the server emits `listening`.
 */
export function changeOptions(
  server: HttpServer,
  options: Pick<ServerOptions, "connectionsCheckingInterval" | "maxHeaderSize">,
): void {
  Object.assign(server, options);
}

/** Returns the TCP connection below a TLS socket, which Node keeps under this name; undefined if there is none. */
export function transportOf(secured: Socket): Socket | undefined {
  const below: unknown = "_parent" in secured ? secured._parent : undefined;
  return below instanceof Socket ? below : undefined;
}

/** Gives a socket the address of another peer, such as the client that a proxy names. Node's properties have no setter. */
export function setPeerAddress(socket: Socket, address: string, port: number): void {
  Object.defineProperties(socket, {
    remoteAddress: { value: address, configurable: true },
    remotePort: { value: port, configurable: true },
  });
}

/** The handle of a socket, as Node's streams use it. */
interface Handle {
  reading: boolean;
  readStart(): unknown;
  readStop(): unknown;
}

/**
 * Stops libuv at once from delivering data of a connection, including the rest of the current read and what its poll
 * has already reported. `Socket.pause()` does less: the stream keeps reading until its buffer is full.
 *
 * @returns whether the connection was being read.
 */
export function stopReading(socket: Socket): boolean {
  const handle = handleOf(socket);
  if (handle?.reading !== true) return false;
  handle.reading = false;
  handle.readStop();
  return true;
}

/** Undoes `stopReading`. If the stream has been paused since, reading starts when it resumes. */
export function startReading(socket: Socket): void {
  // A stream with a listener for `readable` always reports that it is paused.
  if (socket.isPaused() && socket.listenerCount("readable") === 0) {
    socket.off("resume", startAgain).once("resume", startAgain);
    return;
  }
  const handle = handleOf(socket);
  if (handle === undefined || handle.reading) return;
  handle.reading = true;
  handle.readStart();
}

function startAgain(this: Socket): void {
  startReading(this);
}

function handleOf(socket: Socket): Handle | undefined {
  const handle: unknown = "_handle" in socket ? socket._handle : undefined;
  return isHandle(handle) ? handle : undefined;
}

function isHandle(handle: unknown): handle is Handle {
  return (
    typeof handle === "object" && handle !== null && "readStop" in handle && "readStart" in handle
  );
}

/**
 * Returns the response that an HTTP/1.1 connection is writing, if any. Node keeps it under this name, and reads it in its
 * own default handler of `clientError`.
 */
export function responseOn(socket: Duplex): unknown {
  return "_httpMessage" in socket ? socket._httpMessage : undefined;
}

/** Returns the head of a response as Node keeps it until the response is complete; undefined if it is not written yet. */
export function headOf(response: ServerResponse): string | undefined {
  const head: unknown = "_header" in response ? response._header : undefined;
  return typeof head === "string" ? head : undefined;
}

/** Takes a part of what a stream reads, or its end: null. Returns false to stop reading. */
type Push<Stream extends Readable> = (
  this: Stream,
  part: Buffer | null,
  encoding?: BufferEncoding,
) => boolean;

/** Replaces the method by which Node adds to a stream what has arrived. */
export function replacePush<Stream extends Readable>(stream: Stream, push: Push<Stream>): void {
  stream.push = push;
}

/** Calls the method of Node, even if that of the stream was replaced. */
export function pushTo(stream: Readable, part: Buffer | null, encoding?: BufferEncoding): boolean {
  return Readable.prototype.push.call(stream, part, encoding);
}

/** Returns the function that collects garbage, which V8 gives only to contexts created with this flag. */
export function garbageCollector(): NodeJS.GCFunction {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc");
}

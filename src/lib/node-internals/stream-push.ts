import { Readable } from "node:stream";

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

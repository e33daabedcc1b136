import type { Socket } from "node:net";

const END_OF_HEAD = "\r\n\r\n";
/** Maximum bytes after the request to discard before the connection closes. */
const MAX_DISCARDED_BYTES = 64 * 1024;

/**
 * Limits a connection to one request. The HTTP parser gets nothing before the head is complete, and nothing after it: half
 * a head costs no parser, and pipelined requests beyond the first are discarded. Data that exceeds the maximum size of a
 * head is passed on unchanged: the parser reports why it is invalid. A connection that has sent more than that size after
 * its head is destroyed without an answer: its client would not read one, and a flood of such connections must cost little.
 *
 * @param headBytes the maximum size of a head, in bytes.
 * @param accept starts HTTP on the connection, from which it can read the head.
 * @returns a function that discards all further data, to be called when the parser has the head.
 */
export function acceptSingleRequest(
  socket: Socket,
  headBytes: number,
  accept: (socket: Socket) => void,
): () => void {
  let arrived: Buffer = Buffer.alloc(0);
  let discarded = 0;

  function collect(chunk: Buffer): void {
    arrived = arrived.length === 0 ? chunk : Buffer.concat([arrived, chunk]);
    const end = arrived.indexOf(END_OF_HEAD);
    if (end === -1 && arrived.length <= headBytes) return;
    const head = end === -1 ? arrived : arrived.subarray(0, end + END_OF_HEAD.length);
    if (arrived.length - head.length > headBytes) return abandon();
    arrived = Buffer.alloc(0);
    socket.off("data", collect).off("end", abandon);
    socket.pause();
    socket.unshift(head);
    accept(socket);
    socket.resume();
  }

  function abandon(): void {
    socket.destroy();
  }

  function discard(chunk: Buffer | string): void {
    discarded += chunk.length;
    if (discarded > MAX_DISCARDED_BYTES) socket.destroy();
  }

  socket.on("data", collect).on("end", abandon);
  socket.on("error", () => socket.destroy());
  return () => {
    if (socket.listenerCount("data", discard) > 0) return;
    socket.removeAllListeners("data");
    socket.on("data", discard);
  };
}

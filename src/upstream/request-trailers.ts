import { Socket } from "node:net";

/** What undici writes behind a chunked body. It knows no trailers for requests (8.12). */
const LAST_CHUNK = "\r\n0\r\n\r\n";

/**
 * Puts trailers behind the chunked body that is about to be written to a connection (RFC 9112 §7.1.2): the next last chunk
 * is written with them, and the connection is as before.
 *
 * @param trailers gives name and value alternating; asked when the body has ended.
 */
export function endWithTrailers(socket: Socket, trailers: () => readonly string[]): void {
  function write(this: Socket, ...parts: Parameters<Socket["write"]>): boolean {
    if (parts[0] === LAST_CHUNK) {
      Reflect.deleteProperty(socket, "write");
      parts[0] = `\r\n0\r\n${lines(trailers())}\r\n`;
    }
    return Socket.prototype.write.apply(this, parts);
  }
  // A body without bytes has no last chunk and leaves this in place: the next chunked request puts its own here.
  Object.defineProperty(socket, "write", { value: write, configurable: true, writable: true });
}

function lines(fields: readonly string[]): string {
  let text = "";
  for (let i = 0; i + 1 < fields.length; i += 2) text += `${fields[i]}: ${fields[i + 1]}\r\n`;
  return text;
}

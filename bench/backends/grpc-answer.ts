/** A message of gRPC with its prefix (github.com/grpc/grpc, PROTOCOL-HTTP2.md): not compressed, 100 bytes. */
function message(letter: string): Buffer {
  const text = Buffer.alloc(100, letter);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(text.length, 1);
  return Buffer.concat([prefix, text]);
}

/** What every measured call sends, and what every call is answered. */
export const GRPC_QUESTION = message("q");
export const GRPC_ANSWER = message("a");

/** Creates a gRPC message with its prefix (github.com/grpc/grpc, PROTOCOL-HTTP2.md): uncompressed, 100 bytes. */
function message(letter: string): Buffer {
  const text = Buffer.alloc(100, letter);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(text.length, 1);
  return Buffer.concat([prefix, text]);
}

/** The request and the answer of each measured call. */
export const GRPC_REQUEST = message("q");
export const GRPC_ANSWER = message("a");

import type Http2 from "node:http2";

/** Returns `node:http2`. Loads it on first use: it costs memory, and not every process speaks HTTP/2. */
export function nodeHttp2(): typeof Http2 {
  return process.getBuiltinModule("node:http2");
}

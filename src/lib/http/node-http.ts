import type Http2 from "node:http2";

/**
 * The parts of `node:http` that Sallyport uses, and `node:http2` where it is needed. An import of the module would evaluate all of its exports, which
 * makes Node load its own WebSocket and fetch implementations. Sallyport uses neither; they cost 16 MB of resident
 * memory and 27 ms of start time (Node 26.10).
 */
export const {
  Agent,
  createServer,
  IncomingMessage,
  METHODS,
  request,
  ServerResponse,
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} = process.getBuiltinModule("node:http");

/** Returns `node:http2`. Loads it on first use: it costs memory, and not every process speaks HTTP/2. */
export function nodeHttp2(): typeof Http2 {
  return process.getBuiltinModule("node:http2");
}

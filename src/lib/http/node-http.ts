/**
 * The parts of `node:http` that Sallyport uses. An import of the module would evaluate all of its exports, which
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

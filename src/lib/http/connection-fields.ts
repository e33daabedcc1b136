/**
 * Fields about one connection (RFC 9110 §7.6.1). HTTP/2 forbids them (RFC 9113 §8.2.2), except `TE: trailers`, which
 * the proxy writes itself; `HTTP2-Settings` belongs to the upgrade from HTTP/1.1 (RFC 7540 §3.2.1). Node throws if it is
 * made to send one over HTTP/2.
 */
export const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"],
  ...["http2-settings", "te"],
]);

/** The names of the header fields of a trace (W3C Trace Context), in lower case. */
export const TRACE_HEADERS: readonly string[] = ["traceparent", "tracestate"];

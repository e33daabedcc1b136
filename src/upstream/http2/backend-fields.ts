import type { IncomingHttpHeaders } from "node:http";
import { lowerCase } from "../../lib/text/by-name.ts";
import { headersOf } from "../headers/incoming-headers.ts";
import type { BackendRequest } from "../http/connection.ts";
import { BackendFault } from "../http/failures.ts";
import { isSendableTarget, isSendableValue } from "../http1/response-parser.ts";

/**
 * Returns the header section of a request: names and values, alternating. Node sends the pseudo-header fields of
 * RFC 9113 §8.3.1 first.
 *
 * @throws BackendFault
 */
export function requestFields(request: BackendRequest, scheme: string): string[] {
  const { method, path, headers } = request;
  if (!isSendableTarget(path)) throw new BackendFault("unsendable");
  const fields = [":method", method, ":scheme", scheme, ":path", path];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? "";
    const value = headers[i + 1] ?? "";
    if (!isSendableValue(value)) throw new BackendFault("unsendable");
    fields.push(name === "Host" ? ":authority" : lowerCase(name), value);
  }
  // The only value that HTTP/2 allows (RFC 9113 §8.2.2). gRPC servers look for it.
  if (request.acceptsTrailers === true) fields.push("te", "trailers");
  return fields;
}

interface ResponseHead {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

/** The maximum size of a header or trailer section, in bytes. Node announces it to the backend, but does not enforce it. */
export const MAX_HEADER_BYTES = 64 * 1024;

/**
 * Separates the status from the fields. Node has checked the pseudo-header fields, and refuses fields about a connection.
 *
 * @param raw names and values, alternating. The status comes first, as the only pseudo-header field (RFC 9113 §8.3.2).
 * @throws BackendFault for an invalid status, or too many bytes.
 */
export function responseHead(raw: readonly string[]): ResponseHead {
  const status = raw[0] === ":status" ? Number(raw[1]) : 0;
  if (status < 100 || status === 101) throw new BackendFault("invalid_http2", "invalid status");
  return { status, headers: limitedFields(raw, 2) };
}

/** Returns the fields by name. @param from index of the first one. @throws BackendFault if they are too large. */
export function limitedFields(raw: readonly string[], from = 0): IncomingHttpHeaders {
  let bytes = 0;
  for (const text of raw) bytes += text.length;
  if (bytes > MAX_HEADER_BYTES)
    throw new BackendFault("invalid_http2", "fields of more than 64 KiB");
  return headersOf(raw, from);
}

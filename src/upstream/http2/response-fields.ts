import type { IncomingHttpHeaders } from "node:http";
import { headersOf } from "../http/field-map.ts";
import { InvalidHttp2 } from "./http2-faults.ts";

interface ResponseHead {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

/** The maximum size of a header or trailer section, in bytes: Node tells the backend, and takes more all the same. */
export const MAX_HEADER_BYTES = 64 * 1024;

/**
 * Separates the status from the fields. Node has checked the pseudo-header fields, and refuses fields about a connection.
 *
 * @param raw names and values, alternating.
 * @throws InvalidHttp2 for a status that answers no request of ours, or too many bytes.
 */
export function responseHead(raw: readonly string[]): ResponseHead {
  const at = raw.indexOf(":status");
  const status = at === -1 ? 0 : Number(raw[at + 1]);
  if (status < 100 || status === 101) throw new InvalidHttp2("a status that is none");
  return { status, headers: limitedFields(raw.toSpliced(at, 2)) };
}

/** The fields by their names. @throws InvalidHttp2 if they are too large. */
export function limitedFields(raw: readonly string[]): IncomingHttpHeaders {
  const bytes = raw.reduce((sum, text) => sum + text.length, 0);
  if (bytes > MAX_HEADER_BYTES) throw new InvalidHttp2("fields of more than 64 KiB");
  return headersOf(raw);
}

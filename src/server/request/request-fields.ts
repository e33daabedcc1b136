import { type Ambiguity, GateError } from "../../core/request/errors.ts";
import type { IncomingRequest } from "../../core/request/http-message.ts";

/** Maximum number of header fields. Node hides fields beyond its own limit, so this one is lower (CVE-2026-58044). */
export const MAX_HEADER_FIELDS = 256;

/** The error for what two parsers could read differently. */
export function ambiguous(what: Ambiguity): GateError {
  return new GateError("bad_request", { reason: `ambiguous_${what}` });
}

/** The header fields that intake reads. */
export class Fields {
  host: string | undefined;
  /** The first one. */
  authorization: string | undefined;
  authorizations = 0;
  requestId: string | undefined;
  contentLength: string | undefined;
  transferEncoding: string | undefined;
  forwardedFor: string | undefined;
  expect: string | undefined;
  /** `CDN-Loop`: the proxies that the request has passed (RFC 8586). */
  passed: string | undefined;

  /**
   * @param rawHeaders a header section with name and value alternating.
   * @throws GateError `header_too_large` for more than `most` fields, `bad_request` for a repeated field that must be single.
   */
  constructor(rawHeaders: readonly string[], most: number) {
    if (rawHeaders.length > most * 2) throw new GateError("header_too_large");
    for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
      readField(this, rawHeaders[i] ?? "", rawHeaders[i + 1] ?? "");
    }
  }
}

/** Compares names only after their length, which rules out most fields. */
function readField(fields: Fields, name: string, value: string): void {
  switch (name.length) {
    case 4:
      if (name.toLowerCase() === "host") fields.host = single(fields.host, value, "host");
      break;
    case 6:
      if (name.toLowerCase() === "expect") fields.expect = joined(fields.expect, value);
      break;
    case 8:
      if (name.toLowerCase() === "cdn-loop") fields.passed = joined(fields.passed, value);
      break;
    case 12:
      if (name.toLowerCase() === "x-request-id") fields.requestId ??= value;
      break;
    case 13:
      if (name.toLowerCase() !== "authorization") break;
      fields.authorization ??= value;
      fields.authorizations += 1;
      break;
    case 14:
      if (name.toLowerCase() !== "content-length") break;
      fields.contentLength = single(fields.contentLength, value, "length");
      break;
    case 15:
      if (name.toLowerCase() !== "x-forwarded-for") break;
      fields.forwardedFor = joined(fields.forwardedFor, value);
      break;
    case 17:
      if (name.toLowerCase() !== "transfer-encoding") break;
      fields.transferEncoding = single(fields.transferEncoding, value, "framing");
      break;
    default:
  }
}

function single(before: string | undefined, value: string, what: Ambiguity): string {
  if (before !== undefined) throw ambiguous(what);
  return value;
}

function joined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before},${value}`;
}

/** The length of the body, -1 if unknown. `chunked` is the only transfer coding, and not in HTTP/1.0 (RFC 9112 §6.1). */
export function bodyLength(fields: Fields, { httpVersion, hasBody }: IncomingRequest): number {
  const { contentLength, transferEncoding } = fields;
  if (transferEncoding !== undefined) {
    if (contentLength !== undefined || httpVersion !== "1.1") throw ambiguous("framing");
    if (transferEncoding.toLowerCase() !== "chunked") throw ambiguous("framing");
    return -1;
  }
  if (contentLength === undefined) return hasBody === true ? -1 : 0;
  const length = Number(contentLength);
  if (!/^\d+$/.test(contentLength) || !Number.isSafeInteger(length)) throw ambiguous("length");
  // The stream has not ended with its head, and is malformed if a body follows (RFC 9113 §8.1.1): that is known at its end.
  return length === 0 && hasBody === true ? -1 : length;
}

/**
 * Whether the client waits for 100 (RFC 9110 §10.1.1), which HTTP/1.0 does not know. Node would search the whole field.
 * @throws GateError `expectation_failed` for any other expectation.
 */
export function expectsContinue(expect: string, httpVersion: string): boolean {
  if (httpVersion === "1.0") return false;
  if (expect.toLowerCase() !== "100-continue") throw new GateError("expectation_failed");
  return true;
}

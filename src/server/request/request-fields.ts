import { type Ambiguity, GateError } from "../../core/request/errors.ts";

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

import { type Ambiguity, GateError } from "../../core/request/errors.ts";

/** Maximum number of header fields. Node hides fields beyond its own limit, so this one is lower (CVE-2026-58044). */
export const MAX_HEADER_FIELDS = 256;

/** The header fields that intake reads. */
export interface Fields {
  host: string | undefined;
  authorization: string | undefined;
  authorizations: number;
  requestId: string | undefined;
  contentLength: string | undefined;
  transferEncoding: string | undefined;
  forwardedFor: string | undefined;
  expect: string | undefined;
  /** `CDN-Loop`: the proxies that the request has passed (RFC 8586). */
  passed: string | undefined;
}

/** The error for what two parsers could read differently. */
export function ambiguous(what: Ambiguity): GateError {
  return new GateError("bad_request", { reason: `ambiguous_${what}` });
}

/**
 * Reads the fields from a header section with name and value alternating.
 *
 * @throws GateError `header_too_large` for more than `most` fields, `bad_request` for a repeated field that must be single.
 */
export function readFields(rawHeaders: readonly string[], most: number): Fields {
  if (rawHeaders.length > most * 2) throw new GateError("header_too_large");
  const fields: Fields = {
    host: undefined,
    authorization: undefined,
    authorizations: 0,
    requestId: undefined,
    contentLength: undefined,
    transferEncoding: undefined,
    forwardedFor: undefined,
    expect: undefined,
    passed: undefined,
  };
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    readField(fields, rawHeaders[i] ?? "", rawHeaders[i + 1] ?? "");
  }
  return fields;
}

/** Compares names only after their length, which rules out most fields. */
function readField(fields: Fields, name: string, value: string): void {
  switch (name.length) {
    case 4:
      if (name.toLowerCase() === "host") fields.host = once(fields.host, value, "host");
      break;
    case 6:
      if (name.toLowerCase() === "expect") {
        fields.expect = fields.expect === undefined ? value : `${fields.expect},${value}`;
      }
      break;
    case 8:
      if (name.toLowerCase() === "cdn-loop") {
        fields.passed = fields.passed === undefined ? value : `${fields.passed},${value}`;
      }
      break;
    case 12:
      if (name.toLowerCase() === "x-request-id") fields.requestId ??= value;
      break;
    case 13:
      if (name.toLowerCase() === "authorization") {
        fields.authorization ??= value;
        fields.authorizations += 1;
      }
      break;
    case 14:
      if (name.toLowerCase() === "content-length") {
        fields.contentLength = once(fields.contentLength, value, "length");
      }
      break;
    case 15:
      if (name.toLowerCase() === "x-forwarded-for") {
        fields.forwardedFor =
          fields.forwardedFor === undefined ? value : `${fields.forwardedFor},${value}`;
      }
      break;
    case 17:
      if (name.toLowerCase() === "transfer-encoding") {
        fields.transferEncoding = once(fields.transferEncoding, value, "framing");
      }
      break;
    default:
  }
}

function once(before: string | undefined, value: string, what: Ambiguity): string {
  if (before !== undefined) throw ambiguous(what);
  return value;
}

import { GateError } from "../core/errors.ts";

/** The most header fields of a request: Node hides those beyond its own limit, so ours is lower (CVE-2026-58044). */
export const MAX_HEADER_FIELDS = 256;

/** The fields that intake itself reads. */
export interface Fields {
  host: string | undefined;
  authorization: string | undefined;
  authorizations: number;
  requestId: string | undefined;
  contentLength: string | undefined;
  transferEncoding: string | undefined;
  forwardedFor: string | undefined;
  expect: string | undefined;
}

/** The refusal of what two readers could read differently. */
export function ambiguous(reason: string): GateError {
  return new GateError("bad_request", { reason: `ambiguous_${reason}` });
}

/**
 * Reads them from a header section, name and value alternating.
 *
 * @throws GateError `header_too_large` for more than `most` fields, `bad_request` for two of what may stand once.
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
  };
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    readField(fields, rawHeaders[i] ?? "", rawHeaders[i + 1] ?? "");
  }
  return fields;
}

/** The length of a name tells most fields apart without a comparison. */
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

function once(before: string | undefined, value: string, what: string): string {
  if (before !== undefined) throw ambiguous(what);
  return value;
}

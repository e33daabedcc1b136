import { LONGEST_TIMER_MS } from "../../lib/clock.ts";
import { headerValues } from "../../lib/http/header-values.ts";
import { destroyUnlessRead, type IncomingRequest, type OutgoingResponse } from "./http-message.ts";

/** Of gRPC over HTTP/2: github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md. */
const MEDIA_TYPE = /^application\/grpc(?:$|[-+;])/i;

/**
 * Returns the media type of a gRPC request; undefined for any other request. gRPC needs HTTP/2: a client of HTTP/1.1 that
 * sends its media type reads statuses.
 */
export function grpcTypeOf(
  { httpVersion, method }: Pick<IncomingRequest, "httpVersion" | "method">,
  contentType: string | undefined,
): string | undefined {
  if (httpVersion !== "2.0" || method !== "POST" || contentType === undefined) return undefined;
  if (!MEDIA_TYPE.test(contentType)) return undefined;
  return contentType.split(";", 1)[0]?.trim();
}

const TIMEOUT = /^(\d{1,8})([HMSmun])$/;
const MILLISECONDS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};

/** Returns the time limit of a call, in milliseconds; undefined if it has none. @param rawHeaders names and values, alternating. */
export function grpcTimeout(rawHeaders: readonly string[]): number | undefined {
  const [, amount = "", unit = ""] =
    TIMEOUT.exec(headerValues(rawHeaders, "grpc-timeout")[0] ?? "") ?? [];
  const factor = MILLISECONDS[unit];
  return factor === undefined ? undefined : Math.min(Number(amount) * factor, LONGEST_TIMER_MS);
}

const PREFIX_BYTES = 5;

/** Returns a message with its prefix: not compressed, and its length. */
export function grpcFrame(message: Uint8Array): Buffer {
  const frame = Buffer.alloc(PREFIX_BYTES + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, PREFIX_BYTES);
  return frame;
}

/** Returns the only message in a body; undefined if it is compressed, or if there is not exactly one. */
export function grpcMessage(body: Buffer): Buffer | undefined {
  if (body.length < PREFIX_BYTES || body[0] !== 0) return undefined;
  return body.readUInt32BE(1) === body.length - PREFIX_BYTES
    ? body.subarray(PREFIX_BYTES)
    : undefined;
}

const UNKNOWN = 2;
/**
 * Follows doc/http-grpc-status-mapping.md, with more specific statuses for some: 429 is RESOURCE_EXHAUSTED, 408 and
 * 504 are DEADLINE_EXCEEDED, and 431 is INTERNAL like 400.
 */
const BY_STATUS: Readonly<Record<number, number>> = {
  400: 13,
  401: 16,
  403: 7,
  404: 12,
  408: 4,
  429: 8,
  431: 13,
  502: 14,
  503: 14,
  504: 4,
};

/** Returns the gRPC status for an HTTP status. */
export function grpcStatusOf(status: number): number {
  return BY_STATUS[status] ?? UNKNOWN;
}

/** Returns `grpc-status` and `grpc-message`. The message is percent-encoded, except printable ASCII other than `%`. */
export function grpcFields(status: number, message: string): [string, string][] {
  const encoded = message.replaceAll(/[^ -$&-~]/gu, (character) => encodeURIComponent(character));
  return [
    ["grpc-status", String(status)],
    ["grpc-message", encoded],
  ];
}

/**
 * Ends a response that has begun, with a gRPC status in its trailers.
 *
 * @param status the HTTP status.
 * @returns false, without doing anything, if this is not the response to a gRPC call.
 */
export function endGrpcCall(response: OutgoingResponse, status: number, message: string): boolean {
  const { req } = response;
  if (response.writableEnded || response.destroyed) return false;
  if (grpcTypeOf(req, req.headers["content-type"]) === undefined) return false;
  response.addTrailers(grpcFields(grpcStatusOf(status), message));
  response.end();
  destroyUnlessRead(response);
  return true;
}

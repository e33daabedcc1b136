import type { OutgoingResponse } from "./http-message.ts";

/** gRPC over HTTP/2: github.com/grpc/grpc, doc/PROTOCOL-HTTP2.md. */

const MEDIA_TYPE = /^application\/grpc(?:$|[-+;])/i;

/** The media type of a request of gRPC; undefined for any other request. */
export function grpcTypeOf(
  method: string | undefined,
  contentType: string | undefined,
): string | undefined {
  if (method !== "POST" || contentType === undefined || !MEDIA_TYPE.test(contentType))
    return undefined;
  return contentType.split(";", 1)[0]?.trim();
}

const UNKNOWN = 2;
/**
 * As doc/http-grpc-status-mapping.md has it, but that 429 is RESOURCE_EXHAUSTED, and 408 and 504 are DEADLINE_EXCEEDED, which say
 * more.
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

/** The status of gRPC for a status of HTTP. */
export function grpcStatusOf(status: number): number {
  return BY_STATUS[status] ?? UNKNOWN;
}

/** `grpc-status` and `grpc-message`, whose bytes are percent-encoded but for printable ASCII. */
export function grpcFields(status: number, message: string): [string, string][] {
  const encoded = message.replaceAll(/[^ -$&-~]/gu, (character) => encodeURIComponent(character));
  return [
    ["grpc-status", String(status)],
    ["grpc-message", encoded],
  ];
}

/** How long a client may take to read what was sent before the end of its call, in milliseconds. */
const READS_WITHIN_MS = 1_000;

/**
 * Ends an answer that has begun, with a status in its trailers.
 *
 * @param status of HTTP.
 * @returns false if it is no answer to a call of gRPC, and nothing was done.
 */
export function endGrpcCall(response: OutgoingResponse, status: number, message: string): boolean {
  const { req } = response;
  if (req.httpVersion !== "2.0" || response.writableEnded || response.destroyed) return false;
  if (grpcTypeOf(req.method, req.headers["content-type"]) === undefined) return false;
  response.addTrailers(grpcFields(grpcStatusOf(status), message));
  response.end();
  const timer = setTimeout(() => response.destroy(), READS_WITHIN_MS).unref();
  response.once("close", () => clearTimeout(timer));
  return true;
}

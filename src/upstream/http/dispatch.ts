import type { Permit } from "../../core/request/permit.ts";
import type { BackendRequest } from "./connection.ts";
import type { OutgoingHeaders } from "../headers/outgoing-headers.ts";
import { RequestBody } from "./request-body.ts";
import { takesTrailers } from "../headers/request-trailers.ts";
import { backendHost, rewritePath } from "../headers/rewrite.ts";
import { forwardedQuery } from "../headers/without-tokens.ts";
import type { Target } from "../pool/target.ts";

/**
 * Builds the request to the backend.
 *
 * @param target the backend, and whether it may speak HTTP/2, which also carries trailers.
 */
export function dispatchOf(
  permit: Permit,
  outgoing: OutgoingHeaders,
  body: Buffer | RequestBody | undefined,
  { origin, speaksHttp2 }: Pick<Target, "origin" | "speaksHttp2">,
): BackendRequest {
  const { request } = permit;
  const headers = outgoing.headers(permit);
  headers.push("Host", backendHost(permit, origin));
  const length = Buffer.isBuffer(body) ? body.length : request.bodyLength;
  if (length > 0) headers.push("Content-Length", String(length));
  const streams = speaksHttp2 && body instanceof RequestBody;
  return {
    method: request.method,
    path: pathOf(permit),
    headers,
    body: body ?? null,
    acceptsTrailers: speaksHttp2 && takesTrailers(request.rawHeaders),
    trailers: streams ? () => outgoing.trailers(permit, body.trailers) : undefined,
  };
}

/** Returns path and query for the backend. */
export function pathOf(permit: Permit): string {
  const { route, request } = permit;
  const path = route.rewrite === undefined ? request.path : rewritePath(route, request);
  return path + (route.tokenFrom === undefined ? request.query : forwardedQuery(permit));
}

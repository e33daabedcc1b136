import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { BackendRequest } from "./connection.ts";
import type { OutgoingHeaders } from "../headers/outgoing-headers.ts";
import { RequestBody } from "./request-body.ts";
import { takesTrailers } from "../headers/request-trailers.ts";
import { backendHost } from "../headers/backend-host.ts";
import { rewritePath } from "../headers/rewrite.ts";
import { forwardedQuery } from "../headers/without-tokens.ts";
import type { Target } from "../pool/target.ts";

/** Idempotent methods (RFC 9110 §9.2.2). */
const IDEMPOTENT = new Set([
  ...["GET", "HEAD", "OPTIONS", "PUT", "DELETE"],
  ...["PROPFIND", "REPORT", "SEARCH"],
]);

/**
 * Builds the request to the backend.
 *
 * @param target the backend, and whether it may speak HTTP/2.
 */
export function dispatchOf(
  permit: Permit,
  outgoing: OutgoingHeaders,
  body: Buffer | RequestBody | undefined,
  { origin, speaksHttp2 }: Pick<Target, "origin" | "speaksHttp2">,
): BackendRequest {
  const { route, request } = permit;
  const path = route.rewrite === undefined ? request.path : rewritePath(route, request);
  const headers = outgoing.headers(permit);
  const host = backendHost(permit, origin);
  if (host !== "") headers.push("Host", host);
  const length = Buffer.isBuffer(body) ? body.length : request.bodyLength;
  if (length > 0) headers.push("Content-Length", String(length));
  const dispatch = {
    method: request.method,
    path: path + forwardedQuery(permit),
    headers,
    body: body ?? null,
    // Otherwise undici derives it from Host, and reconnects whenever a client sends another.
    servername: "fixed.invalid",
  };
  return speaksHttp2 ? withTrailers(dispatch, permit, outgoing) : dispatch;
}

/** Adds what only HTTP/2 carries: whether the client reads trailers, and the trailers that it sends. */
function withTrailers(
  dispatch: BackendRequest,
  permit: Permit,
  outgoing: OutgoingHeaders,
): BackendRequest {
  const { body } = dispatch;
  const acceptsTrailers = takesTrailers(permit.request.rawHeaders);
  if (!(body instanceof RequestBody)) return { ...dispatch, acceptsTrailers };
  return { ...dispatch, acceptsTrailers, trailers: () => outgoing.trailers(permit, body.trailers) };
}

/** Whether a request may be sent twice. */
export function isIdempotent({ method }: GateRequest): boolean {
  return IDEMPOTENT.has(method);
}

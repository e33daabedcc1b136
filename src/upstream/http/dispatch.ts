import type { GateRequest } from "../../core/request/gate-request.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { BackendRequest } from "./connection.ts";
import type { OutgoingHeaders } from "../headers/outgoing-headers.ts";
import type { RequestBody } from "./request-body.ts";
import { backendHost } from "../headers/backend-host.ts";
import { rewritePath } from "../headers/rewrite.ts";
import { forwardedQuery } from "../headers/without-tokens.ts";
import type { TargetOrigin } from "../pool/target-origin.ts";

/** Idempotent methods (RFC 9110 §9.2.2). */
const IDEMPOTENT = new Set([
  ...["GET", "HEAD", "OPTIONS", "PUT", "DELETE"],
  ...["PROPFIND", "REPORT", "SEARCH"],
]);

/** Builds the request to the backend. */
export function dispatchOf(
  permit: Permit,
  outgoing: OutgoingHeaders,
  body: Buffer | RequestBody | undefined,
  origin: TargetOrigin,
): BackendRequest {
  const { route, request } = permit;
  const path = route.rewrite === undefined ? request.path : rewritePath(route, request);
  const headers = outgoing.headers(permit);
  const host = backendHost(permit, origin);
  if (host !== "") headers.push("Host", host);
  if (request.bodyLength > 0) headers.push("Content-Length", String(request.bodyLength));
  return {
    method: request.method,
    path: path + forwardedQuery(permit),
    headers,
    body: body ?? null,
    // Otherwise undici derives it from Host, and reconnects whenever a client sends another.
    servername: "fixed.invalid",
  };
}

/** Whether a request may be sent twice. */
export function isIdempotent({ method }: GateRequest): boolean {
  return IDEMPOTENT.has(method);
}

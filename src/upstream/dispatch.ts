import type { Dispatcher } from "undici";
import type { GateRequest } from "../core/gate-request.ts";
import type { Permit } from "../core/permit.ts";
import type { OutgoingHeaders } from "./outgoing-headers.ts";
import type { RequestBody } from "./request-body.ts";
import { rewritePath } from "./rewrite.ts";

/** None, a small one as a whole, or one that is passed on as it comes. */
export type Body = Buffer | RequestBody | undefined;

/** `servername` is fixed, since undici would derive it from Host and reconnect whenever a client sends another. */
type Dispatch = Dispatcher.DispatchOptions & { readonly servername: string };

/** Methods that may be sent twice (RFC 9110 §9.2.2). */
const IDEMPOTENT = new Set([
  ...["GET", "HEAD", "OPTIONS", "PUT", "DELETE"],
  ...["PROPFIND", "REPORT", "SEARCH"],
]);

/** What the backend is sent for a permitted request. */
export function dispatchOf(permit: Permit, outgoing: OutgoingHeaders, body: Body): Dispatch {
  const { route, request } = permit;
  const path = route.rewrite === undefined ? request.path : rewritePath(route, request);
  const headers = outgoing.headers(permit);
  if (request.authority !== "") headers.push("Host", request.authority);
  if (request.bodyLength > 0) headers.push("Content-Length", String(request.bodyLength));
  return {
    method: request.method,
    path: path + request.query,
    headers,
    body: body ?? null,
    servername: "fixed.invalid",
  };
}

/** The request may be sent once more: it changes nothing twice, and all of it is still here. */
export function isRepeatable({ method }: GateRequest, body: Body): boolean {
  if (!IDEMPOTENT.has(method)) return false;
  return body === undefined || Buffer.isBuffer(body) || body.untouched;
}

import type { Permit } from "../../core/request/permit.ts";
import type { BackendRequest } from "./connection.ts";
import { type OutgoingHeaders, takesTrailers } from "../headers/outgoing-headers.ts";
import { RequestBody } from "./client-body.ts";
import { backendHost, forwardedQuery, rewritePath } from "../headers/rewrite.ts";
import type { Target } from "../pool/target.ts";
import type { BufferedBytes } from "../../server/listener/connection-ledger.ts";
import type { ClientReading } from "../../server/listener/reading/fair-reading.ts";
import type { Transfer } from "../../core/request/transfer.ts";
import type { Observer } from "../../core/observer.ts";
import type {
  IncomingRequest,
  OutgoingResponse,
  UpgradeRequest,
} from "../../core/request/http-message.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Upstream } from "../pool/upstreams.ts";
import type { BodyCopy } from "../mirror/mirrors.ts";

/**
 * Builds the request to the backend.
 *
 * @param target the backend, and whether it may speak HTTP/2, which also carries trailers.
 * @param retries the number of earlier attempts.
 */
export function dispatchOf(
  permit: Permit,
  outgoing: OutgoingHeaders,
  body: Buffer | RequestBody | undefined,
  { origin, speaksHttp2 }: Pick<Target, "origin" | "speaksHttp2">,
  retries = 0,
): BackendRequest {
  const { request } = permit;
  const headers = outgoing.headers(permit, retries);
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

/** One request that may be forwarded. */
export interface PermittedRequest {
  readonly settings: ForwardingSettings;
  readonly permit: Permit;
  readonly upstream: Upstream;
  readonly request: IncomingRequest;
  readonly response: OutgoingResponse;
  readonly transfer: Transfer;
  /** Receives a copy of the body if the request is mirrored. */
  readonly copy: BodyCopy | undefined;
}

/** A permitted upgrade. Its response is used if the backend refuses. */
export type UpgradeContext = Omit<PermittedRequest, keyof UpgradeRequest | "copy"> & UpgradeRequest;

/** What all requests of a gate share. */
export interface ForwardingSettings {
  readonly outgoing: OutgoingHeaders;
  readonly buffered: BufferedBytes;
  readonly reading: ClientReading;
  readonly clock: Clock;
  readonly observer: Pick<
    Observer,
    | "upstreamAnswered"
    | "upstreamFailed"
    | "upstreamRetried"
    | "requestMirrored"
    | "webSocketOpened"
    | "webSocketClosed"
  >;
}

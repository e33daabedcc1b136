import { z } from "zod";
import { UNDERSCORE_HEADERS } from "../../core/request/underscore-headers.ts";
import { MAX_HEADER_FIELDS } from "../../server/request/request-fields.ts";
import { duration, size, sizeOrUnlimited } from "./fields.ts";

/** Fields that limit what a client or a backend can use: parts of the sections `server`, `routes` and `upstreams`. */

/**
 * Returns a tenth of all connections, so that it takes at least ten clients to use all of them, but at least 10: a
 * browser opens six.
 */
function defaultPerAddress(connections: number): number {
  return Math.max(10, Math.ceil(connections / 10));
}

/** The protocols that clients and load balancers may use. */
export function protocols() {
  return {
    http2: z
      .boolean()
      .default(false)
      .describe(
        "Whether clients may speak HTTP/2 as well as HTTP/1.1; without TLS, by prior knowledge",
      ),
    proxyProtocol: z
      .enum(["off", "accept"])
      .default("off")
      .describe(
        "With accept, each connection from server.trustedProxies must begin with a PROXY protocol header, version 1 or 2",
      ),
    underscoreHeaders: z
      .enum(UNDERSCORE_HEADERS)
      .default("allow")
      .describe(
        "Header fields and trailers of requests with _ in their names: allow passes those that shadow no header of Sallyport's, drop removes all, reject answers 400",
      ),
  };
}

export function serverLimits() {
  return z
    .strictObject({
      headerBytes: size({ min: 1024, max: 1024 ** 2 })
        .prefault("16KiB")
        .describe("Maximum size of a request's head"),
      headers: z
        .int()
        .min(1)
        .max(MAX_HEADER_FIELDS)
        .default(100)
        .describe("Maximum number of header fields"),
      bodyBytes: sizeOrUnlimited()
        .prefault("10MiB")
        .describe("Maximum size of a request's body, or unlimited"),
      bufferedBytes: size({ min: 1024 ** 2 })
        .prefault("64MiB")
        .describe("Memory for data buffered for clients, in all threads together"),
      streams: z
        .int()
        .min(1)
        .max(10_000)
        .default(100)
        .describe("Maximum number of concurrent requests on one HTTP/2 connection"),
      connections: z
        .int()
        .min(1)
        .max(1_000_000)
        .default(10_000)
        .describe("Maximum number of open connections"),
      connectionsPerAddress: z
        .int()
        .min(1)
        .max(1_000_000)
        .exactOptional()
        .describe(
          "Maximum number per address, or IPv6 /64; trusted proxies are exempt. Default: a tenth of connections, at least 10",
        ),
    })
    .transform((limits) => ({
      ...limits,
      connectionsPerAddress: limits.connectionsPerAddress ?? defaultPerAddress(limits.connections),
    }))
    .prefault({})
    .describe("Limits for clients");
}

export function routeLimits() {
  return z.strictObject({
    bodyBytes: sizeOrUnlimited()
      .exactOptional()
      .describe("Maximum size of a request's body, or unlimited; default: that of server.limits"),
  });
}

export function rateLimit() {
  const count = () => z.int().min(1).max(1_000_000);
  return z.strictObject({
    requests: count().describe("Sustained rate: requests allowed per within"),
    within: duration({ min: 1_000 })
      .refine((milliseconds) => milliseconds % 1_000 === 0, "must be whole seconds")
      .prefault("1s")
      .describe("Period of the rate"),
    burst: count().exactOptional().describe("Requests allowed at once; default: requests"),
    by: z
      .enum(["subject", "address"])
      .exactOptional()
      .describe(
        "What counts as one caller; default: the subject, or the address on a public route",
      ),
  });
}

export function queue() {
  return z
    .strictObject({
      length: z
        .int()
        .min(0)
        .max(100_000)
        .default(64)
        .describe("Requests that may wait for a connection; further ones get 503"),
      timeout: duration().prefault("1s").describe("Maximum wait, after which a request gets 503"),
    })
    .prefault({})
    .describe("Queue for requests that arrive while all connections are in use");
}

import { z } from "zod";
import { UNDERSCORE_HEADERS } from "../../core/request/underscore-headers.ts";
import { MAX_HEADER_FIELDS } from "../../server/request/intake.ts";
import { flag, size, sizeOrUnlimited, whole } from "./fields.ts";

/** The parts of the section `server` about protocols and limits. */

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
    http2: flag(false).describe(
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
      headers: whole(1, MAX_HEADER_FIELDS).default(100).describe("Maximum number of header fields"),
      bodyBytes: sizeOrUnlimited()
        .prefault("10MiB")
        .describe("Maximum size of a request's body, or unlimited"),
      bufferedBytes: size({ min: 1024 ** 2 })
        .prefault("64MiB")
        .describe("Memory for data buffered for clients, in all threads together"),
      streams: whole(1, 10_000)
        .default(100)
        .describe("Maximum number of concurrent requests on one HTTP/2 connection"),
      connections: whole(1, 1_000_000)
        .default(10_000)
        .describe("Maximum number of open connections"),
      connectionsPerAddress: whole(1, 1_000_000)
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

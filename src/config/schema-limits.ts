import { z } from "zod";
import { MAX_HEADER_FIELDS } from "../server/request-fields.ts";
import { duration, size, sizeOrUnlimited } from "./fields.ts";

/** What bounds the cost of a client or of a backend: parts of the sections `server`, `routes` and `upstreams`. */

export function serverLimits() {
  return z
    .strictObject({
      headerBytes: size({ min: 1024, max: 1024 ** 2 })
        .prefault("16KiB")
        .describe("The largest head of a request"),
      headers: z
        .int()
        .min(1)
        .max(MAX_HEADER_FIELDS)
        .default(100)
        .describe("Header fields of a request"),
      bodyBytes: sizeOrUnlimited()
        .prefault("10MiB")
        .describe("The largest body of a request, or unlimited"),
      connections: z
        .int()
        .min(1)
        .max(1_000_000)
        .default(10_000)
        .describe("Open connections of clients, for each thread"),
      connectionsPerAddress: z
        .int()
        .min(1)
        .max(1_000_000)
        .default(1_000)
        .describe("Open connections of one address, or /64 of IPv6; not of trusted proxies"),
    })
    .prefault({})
    .describe("What a client may ask for at most");
}

export function routeLimits() {
  return z.strictObject({
    bodyBytes: sizeOrUnlimited()
      .exactOptional()
      .describe("The largest body of a request, or unlimited; the server's when left out"),
  });
}

export function rateLimit() {
  const count = () => z.int().min(1).max(1_000_000);
  return z.strictObject({
    requests: count().describe("So many requests go on for ever"),
    within: duration({ min: 1_000 })
      .refine((milliseconds) => milliseconds % 1_000 === 0, "must be whole seconds")
      .prefault("1s")
      .describe("The time in which they may come"),
    burst: count().exactOptional().describe("How many may come at once; requests when left out"),
    by: z
      .enum(["subject", "address"])
      .exactOptional()
      .describe("Who is counted; when left out the subject, on a public route the address"),
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
        .describe("Requests that may wait for a connection; more get 503"),
      timeout: duration().prefault("1s").describe("How long one waits until it gets 503"),
    })
    .prefault({})
    .describe("For requests that come when every connection is busy");
}

import { z } from "zod";
import {
  duration,
  entryName,
  headerName,
  NAME,
  network,
  size,
  sizeOrUnlimited,
  text,
  whole,
  wholeSeconds,
} from "../fields.ts";

/** Keys of a route that select its requests, and limit them; and the section `networks`, to which they refer. */

const NETWORK_OR_NAME = "must be a network such as 10.0.0.0/8, or a name under networks";

function networkList() {
  return z
    .array(
      z
        .string()
        .refine((text) => NAME.test(text) || network().safeParse(text).success, NETWORK_OR_NAME),
    )
    .min(1);
}

/** Header fields that a request must have to match the route. */
export function matchedHeaders() {
  return z
    .record(
      headerName(),
      z
        .string()
        .regex(/^[!-~](?:[ -~]*[!-~])?$/, "must be printable ASCII without blanks around it")
        .describe("The value that the only field of this name must have"),
    )
    .refine((headers) => Object.keys(headers).length > 0, "must name at least one header")
    .exactOptional()
    .describe("Header fields that a request must have; they are under the client's control");
}

export function paths() {
  return z
    .enum(["strict", "encoded", "asSent"])
    .default("strict")
    .describe(
      "Which paths the route accepts: encoded also those with %2F, %3B, %23 and the like, asSent also those with //, ; and brackets",
    );
}

export function networkKeys() {
  return {
    allow: networkList()
      .exactOptional()
      .describe(
        "Networks, or names of them, from which clients may come (others get 403); default: every network",
      ),
    deny: networkList()
      .exactOptional()
      .describe("Networks, or names of them, from which clients get 403"),
  };
}

export function routeTimeouts() {
  return z
    .strictObject({
      response: duration().exactOptional().describe("Time until the response head arrives"),
      idle: duration().exactOptional().describe("Maximum silence within a body"),
    })
    .exactOptional()
    .describe("Overrides the time-outs of the upstream");
}

export function concurrency() {
  return z
    .strictObject({
      requests: whole(1, 1_000_000).describe("Requests in flight; further ones get 429"),
      by: z
        .enum(["route", "subject", "client"])
        .default("route")
        .describe(
          "What counts together: all requests of the route, or those of one caller or address",
        ),
    })
    .exactOptional()
    .describe("Limits the requests in flight");
}

export function routeLimits() {
  return z.strictObject({
    bodyBytes: sizeOrUnlimited()
      .exactOptional()
      .describe("Maximum size of a request's body, or unlimited; default: that of server.limits"),
  });
}

export function rateLimit() {
  return z.strictObject({
    requests: whole(1, 1_000_000).describe("Sustained rate: requests allowed per within"),
    within: wholeSeconds({ min: 1_000 }).prefault("1s").describe("Period of the rate"),
    burst: whole(1, 1_000_000)
      .exactOptional()
      .describe("Requests allowed at once; default: requests"),
    by: z
      .enum(["subject", "address"])
      .exactOptional()
      .describe(
        "What counts as one caller; default: the subject, or the address with auth: none or optional. With subject and auth: optional, callers without a token count by address",
      ),
  });
}

/** Statuses are written as numbers, too, as elsewhere in the file. */
function retryCause() {
  return z
    .literal(["connect", "stale", "502", "503", "504", 502, 503, 504])
    .transform((written) => (typeof written === "number" ? (`${written}` as const) : written));
}

export function retry() {
  return z
    .strictObject({
      attempts: whole(0, 5).default(1).describe("Maximum number of retries"),
      on: z
        .array(retryCause())
        .prefault(["connect", "stale"])
        .describe(
          "connect: no connection. stale: the connection closed before the response. Statuses: only for idempotent methods",
        ),
    })
    .exactOptional()
    .describe("When Sallyport retries a request; default: once, on connect and stale");
}

/** Copies of requests for another upstream. */
export function mirror() {
  return z
    .strictObject({
      upstream: text().describe("Name of the upstream that gets the copies"),
      percent: z
        .number()
        .min(0)
        .max(100)
        .default(100)
        .describe("Percentage of the requests to copy"),
      bodyBytes: size({ max: 2 ** 30 })
        .prefault("1MiB")
        .describe("Requests with larger bodies are not copied"),
    })
    .exactOptional()
    .describe("Sends copies of the requests to another upstream, and ignores its responses");
}

/** The section `networks`. */
export function networksSection() {
  return z
    .record(entryName(), z.array(network()).min(1).describe("Addresses and networks"))
    .default({})
    .describe("Named networks, for allow and deny of routes");
}

import { z } from "zod";
import { isIP } from "node:net";
import { BALANCES } from "../../../upstream/pool/balancers.ts";
import { duration, refuse, whole } from "../fields.ts";

/** Keys of an upstream that determine how targets are chosen, and when a target is not used. */

const RANGE = /^(\d{3})(?:-(\d{3}))?$/;

/** `200-399,404`, parsed to ranges. */
function statuses() {
  const message = "must be statuses such as 200-399 or 200,204";
  return z.string().transform((text, context) => {
    const ranges = text.split(",").flatMap((part): [number, number][] => {
      const [, from = "", to = from] = RANGE.exec(part.trim()) ?? [];
      return from === "" || Number(from) < 200 || Number(to) > 599 || from > to
        ? []
        : [[Number(from), Number(to)]];
    });
    return ranges.length === text.split(",").length ? ranges : refuse(context, message);
  });
}

/** `50%`, parsed to 0.5. */
function percentage() {
  const message = "must be a percentage such as 50%";
  return z.string().transform((text, context) => {
    const [, digits = ""] = /^(\d{1,3})%$/.exec(text) ?? [];
    const percent = Number(digits);
    return percent >= 1 && percent <= 100 ? percent / 100 : refuse(context, message);
  });
}

function healthTimes() {
  return {
    interval: duration({ min: 100 }).prefault("5s").describe("Time between two checks"),
    timeout: duration().prefault("1s").describe("Time for the response"),
    healthy: whole(1, 100)
      .default(2)
      .describe("Successful checks in a row after which a target is used again"),
    unhealthy: whole(1, 100)
      .default(3)
      .describe("Failed checks in a row after which a target gets no requests"),
  };
}

function health() {
  return z.strictObject({
    kind: z
      .enum(["http", "grpc"])
      .default("http")
      .describe("What to check: a path, or grpc.health.v1 of a service"),
    path: z
      .string()
      .regex(/^\/[!-~]*$/, "must be a path, and may have a query")
      .exactOptional()
      .describe("With kind http: path to GET"),
    status: statuses()
      .exactOptional()
      .describe("With kind http: statuses that mean healthy; default: 200-399"),
    service: z
      .string()
      .regex(/^[\w.-]{0,127}$/, "must be the name of a service, such as orders.v1.Orders")
      .exactOptional()
      .describe("With kind grpc: name of the service; default: the whole server"),
    ...healthTimes(),
  });
}

function ejection() {
  return z.strictObject({
    failures: whole(1, 10_000)
      .default(5)
      .describe(
        "Failures in a row that eject a target: no connection, a broken one, a time-out, a status of 500 or more",
      ),
    for: duration()
      .prefault("30s")
      .describe(
        "Length of the ejection; each further one in a row is that much longer, up to ten times",
      ),
    most: percentage()
      .prefault("50%")
      .describe("Percentage of the targets that may be ejected at once; never the last one"),
  });
}

/** Whether a text is an address such as `10.0.0.10`, `10.0.0.10:53`, `2001:db8::1` or `[2001:db8::1]:53`. */
function isDnsServer(text: string): boolean {
  if (isIP(text) !== 0) return true;
  const [, v6, v4, port = "0"] = /^(?:\[([^\]]+)\]|([\d.]+)):(\d{1,5})$/.exec(text) ?? [];
  const sound = v6 === undefined ? isIP(v4 ?? "") === 4 : isIP(v6) === 6;
  return sound && Number(port) >= 1 && Number(port) <= 65_535;
}

function resolve() {
  return z.strictObject({
    interval: duration({ min: 100 }).prefault("10s").describe("Longest time between two lookups"),
    servers: z
      .array(z.string().refine(isDnsServer, "must be an IP address, which may have a port"))
      .min(1)
      .exactOptional()
      .describe("DNS servers to query, as often as the TTL says; default: the system's resolver"),
    family: z
      .enum(["auto", "ipv4", "ipv6", "all"])
      .default("auto")
      .describe("Which addresses to use; auto: IPv4 if there are any, otherwise IPv6"),
    staleFor: duration()
      .prefault("10m")
      .describe("How long the last known addresses stay in use while lookups find none"),
  });
}

export function targetKeys() {
  return {
    protocol: z
      .enum(["http1", "http2", "h2c", "auto"])
      .default("http1")
      .describe(
        "Protocol of the targets. http2: HTTP/2 over TLS; h2c: HTTP/2 without TLS, by prior knowledge; auto: the one that TLS negotiates",
      ),
    resolve: resolve()
      .exactOptional()
      .describe(
        "Makes each address of a name a separate target; default: each connection resolves the name",
      ),
    balance: z
      .enum(BALANCES)
      .default("roundRobin")
      .describe("How to choose among the targets that have a free connection"),
    health: health().exactOptional().describe("Checks each of several targets at intervals"),
    ejection: ejection()
      .prefault({})
      .describe("Stops using a target that fails requests, if there are others"),
    slowStart: duration()
      .exactOptional()
      .describe("Time until a target that is used again gets its full share; default: at once"),
  };
}

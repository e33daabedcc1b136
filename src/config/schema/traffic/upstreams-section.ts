import { isIPv6 } from "node:net";
import { z } from "zod";
import { duration, entryName, filePath, isHost, refuse, whole } from "../fields.ts";
import { targetKeys } from "./target-keys.ts";

/** The section `upstreams`. */

const TARGET = "must be http://host:port, https://host:port or unix:/path/of/socket";

/** Accepts an origin only: routes define paths, and credentials do not belong in a configuration. */
function isTarget(target: string): boolean {
  if (/^unix:(?:\/\/)?\/[^/\s\p{Cc}][^\p{Cc}]*$/u.test(target)) return true;
  const [, v6, host, port = "1"] =
    /^https?:\/\/(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(target) ?? [];
  if (Number(port) < 1 || Number(port) > 65_535) return false;
  return v6 === undefined ? host !== undefined && isHost(host.replaceAll("_", "-")) : isIPv6(v6);
}

/**
 * Returns a hint for a text that is not a target. Quotes only text that is certainly an address: anything else may
 * contain a secret.
 */
function targetHint(text: string): string | undefined {
  if (/^[A-Za-z0-9.-]+:\d{1,5}$/.test(text)) return `did you mean http://${text}?`;
  return /^https?:\/\/[A-Za-z0-9.-]+(?::\d{1,5})?\/[^@]*$/.test(text)
    ? "leave the path out: rewrite.addPrefix of a route adds one"
    : undefined;
}

function target() {
  return z.string().superRefine((text, context) => {
    if (!isTarget(text)) refuse(context, TARGET, { hint: targetHint(text) });
  });
}

function weightedTarget() {
  return z.strictObject({
    url: target().describe("Address of the target"),
    weight: whole(1, 1000)
      .default(1)
      .describe("Its share of the requests, relative to the other targets"),
  });
}

/** Separates the addresses of the targets from their weights, if any target has one. */
function withWeights<Rest extends { readonly targets: readonly WrittenTarget[] }>({
  targets,
  ...rest
}: Rest) {
  const rows = targets.map((each) => (typeof each === "string" ? { url: each, weight: 1 } : each));
  const weighted = rows.some(({ weight }) => weight !== 1);
  return {
    ...rest,
    targets: rows.map(({ url }) => url),
    ...(weighted ? { weights: rows.map(({ weight }) => weight) } : {}),
  };
}

type WrittenTarget = string | { readonly url: string; readonly weight: number };

function upstreamTls() {
  return z.strictObject({
    caFile: filePath()
      .exactOptional()
      .describe("Authorities for the targets' certificates, PEM; default: Node's"),
    certFile: filePath().exactOptional().describe("Client certificate, PEM"),
    keyFile: filePath({ secret: true }).exactOptional().describe("Its private key, PEM"),
    serverName: z
      .string()
      .refine(isHost, "must be a host name")
      .exactOptional()
      .describe("Name that the certificate must have; default: the target's host"),
  });
}

function queue() {
  return z
    .strictObject({
      length: whole(0, 100_000)
        .default(64)
        .describe("Requests that may wait for a connection; further ones get 503"),
      timeout: duration().prefault("1s").describe("Maximum wait, after which a request gets 503"),
    })
    .prefault({})
    .describe("Queue for requests that arrive while all connections are in use");
}

export function upstreamsSection() {
  const upstream = z.strictObject({
    targets: z
      .array(z.union([target(), weightedTarget()]))
      .min(1)
      .describe("http://host:port, https://host:port or unix:/path/of/socket"),
    ...targetKeys(),
    tls: upstreamTls().exactOptional().describe("TLS for https targets"),
    connections: whole(1, 65_535).default(256).describe("Maximum connections to each target"),
    queue: queue(),
    timeouts: z
      .strictObject({
        connect: duration().prefault("5s").describe("Time to connect"),
        response: duration().prefault("60s").describe("Time until the response head arrives"),
        idle: duration().prefault("5m").describe("Maximum silence within a body"),
      })
      .prefault({})
      .describe("Time limits for the backend"),
    websocket: z
      .strictObject({
        handshake: duration().prefault("10s").describe("Time until the backend switches protocols"),
        idle: duration().prefault("5m").describe("Maximum silence on an open WebSocket"),
      })
      .prefault({})
      .describe("Time limits for WebSockets"),
  });
  return z
    .record(entryName(), upstream.transform(withWeights))
    .refine((upstreams) => Object.keys(upstreams).length > 0, "must name at least one upstream")
    .describe("The backends, by name");
}

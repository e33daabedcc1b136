import { isIPv6 } from "node:net";
import { z } from "zod";
import { accessKeys } from "./access-keys.ts";
import { duration, filePath, isHost, name, NAME, text } from "../fields.ts";
import { routeAssertion } from "../identity/assertion-section.ts";
import { routeAuthorize } from "./authorization-section.ts";
import { headerKeys } from "./header-fields.ts";
import { queue, rateLimit, routeLimits } from "../limits.ts";
import {
  concurrency,
  matchedHeaders,
  mirror,
  networkKeys,
  paths,
  routeTimeouts,
} from "./route-keys.ts";
import { pathRegex } from "../path-regex.ts";
import { retry, targetKeys } from "./target-keys.ts";
import { urlPath } from "../url-path.ts";

/** The sections about routing: `routes` and `upstreams`. */

const HOST_PATTERN = "must be a host name without a port, such as api.example.com or *.example.com";

/** The keys that determine which requests a route matches. */
function matching() {
  return {
    hosts: z
      .array(
        z
          .string()
          .refine((host) => isHost(host.replace(/^\*\./, "")), HOST_PATTERN)
          .transform((host) => host.toLowerCase()),
      )
      .min(1)
      .exactOptional()
      .describe("Host names; *.example.com matches one label. Default: every host"),
    path: urlPath("prefix")
      .exactOptional()
      .describe("Path prefix, on segment boundaries; default: /"),
    exact: urlPath("exact").exactOptional().describe("One exact path"),
    regex: pathRegex()
      .exactOptional()
      .describe("Regular expression for the whole path, matched in linear time"),
    methods: z
      .array(z.string().superRefine(checkMethod))
      .min(1)
      .exactOptional()
      .describe("Methods in upper case. Default: every method"),
    headers: matchedHeaders(),
  };
}

function route() {
  return z
    .strictObject({
      name: name().describe("Name of the route in metrics and logs"),
      ...matching(),
      ...networkKeys(),
      paths: paths(),
      ...accessKeys(),
      upstream: text().describe("Name of the upstream"),
      forwardAuthorization: z
        .enum(["strip", "keep"])
        .default("strip")
        .describe("Whether the backend gets the Authorization header: strip removes it"),
      limits: routeLimits().exactOptional().describe("Overrides server.limits for this route"),
      rateLimit: rateLimit().exactOptional().describe("Limits the requests of one caller (429)"),
      rewrite: rewrite().exactOptional().describe("Rewrites the path for the backend"),
      ...headerKeys(),
      timeouts: routeTimeouts(),
      concurrency: concurrency(),
      authorize: routeAuthorize(),
      retry: retry(),
      mirror: mirror(),
      assertion: routeAssertion(),
    })
    .transform(({ path, exact, regex, ...rest }) => {
      if (exact !== undefined) return { ...rest, exact };
      return regex === undefined ? { ...rest, path: path ?? "/" } : { ...rest, regex };
    });
}

function rewrite() {
  const prefix = () =>
    urlPath("plain")
      .refine((path) => !path.endsWith("/"), "must not end with a slash")
      .exactOptional();
  return z.strictObject({
    stripPrefix: prefix().describe("Prefix to remove from the path"),
    addPrefix: prefix().describe("Prefix to add to the path after that"),
    responses: z
      .boolean()
      .exactOptional()
      .describe(
        "Whether to map Location, Content-Location, Refresh and cookie paths back; default: if the path or the Host is changed",
      ),
  });
}

function checkMethod(method: string, context: z.RefinementCtx<string>): void {
  if (method === "CONNECT" || method === "TRACE") {
    context.addIssue({ code: "custom", message: "must not be CONNECT or TRACE", input: method });
  } else if (!/^[A-Z]+(?:-[A-Z]+)*$/.test(method)) {
    const upper = method.toUpperCase();
    const hint = /^[A-Z]+$/.test(upper) ? { params: { hint: `did you mean ${upper}?` } } : {};
    context.addIssue({
      code: "custom",
      message: "must be a method in upper case",
      input: method,
      ...hint,
    });
  }
}

export function routesSection() {
  return z
    .array(route())
    .min(1, "must not be empty: leave it out to send everything to the only upstream")
    .exactOptional()
    .describe("Which requests go to which upstream; default: everything goes to the only upstream");
}

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
  if (/^https?:\/\/[A-Za-z0-9.-]+(?::\d{1,5})?\/[^@]*$/.test(text)) {
    return "leave the path out: rewrite.addPrefix of a route adds one";
  }
  return undefined;
}

function target() {
  return z.string().superRefine((text, context) => {
    if (isTarget(text)) return;
    const hint = targetHint(text);
    const params = hint === undefined ? {} : { params: { hint } };
    context.addIssue({ code: "custom", message: TARGET, ...params });
  });
}

/** Separates the addresses of the targets from their weights, if any target has one. */
function withWeights<Rest extends { readonly targets: readonly WrittenTarget[] }>({
  targets,
  ...rest
}: Rest) {
  const rows = targets.map((each) =>
    typeof each === "string" ? { url: each, weight: 1 } : { url: each.url, weight: each.weight },
  );
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

export function upstreamsSection() {
  const upstream = z.strictObject({
    targets: z
      .array(
        z.union([
          target(),
          z.strictObject({
            url: target().describe("Address of the target"),
            weight: z
              .int()
              .min(1)
              .max(1000)
              .default(1)
              .describe("Its share of the requests, relative to the other targets"),
          }),
        ]),
      )
      .min(1)
      .describe("http://host:port, https://host:port or unix:/path/of/socket"),
    ...targetKeys(),
    tls: upstreamTls().exactOptional().describe("TLS for https targets"),
    connections: z
      .int()
      .min(1)
      .max(65_535)
      .default(256)
      .describe("Maximum connections to each target"),
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
  const names = z.string().regex(NAME, "is not a name: 1 to 64 of a-z, 0-9, _ and -");
  return z
    .record(names, upstream.transform(withWeights))
    .refine((upstreams) => Object.keys(upstreams).length > 0, "must name at least one upstream")
    .describe("The backends, by name");
}

import { isIP, isIPv6 } from "node:net";
import { z } from "zod";
import {
  duration,
  entryName,
  filePath,
  isHost,
  oneOf,
  optional,
  optionalMapping,
  refuse,
  settings,
  whole,
} from "../fields.ts";
import { decidesOnly } from "./decisions-section.ts";
import { BALANCES } from "../../upstream/pool/balancers.ts";
import { originOf } from "../../upstream/pool/target-origin.ts";
import {
  listAt,
  type Mapping,
  mappingAt,
  ofEachUpstream,
  type PathProblem,
  textAt,
  type Written,
} from "../written.ts";
import type { YamlPath } from "../../lib/files/positioned-yaml.ts";

/** The section `upstreams`. */
export const upstreams = {
  schema: upstreamsSection,
  rules: [
    missingUpstreams,
    ...[certificateProblems, protocolProblems, resolveProblems].map(ofEachUpstream),
  ],
};

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
    weight: whole(1, 1000).default(1).describe("Its share of the requests, relative to others"),
  });
}

/** Separates the addresses of the targets from their weights, one for each; without weights, all are 1. */
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

function upstreamsSection() {
  const upstream = z.strictObject({
    targets: z
      .array(z.union([target(), weightedTarget()]))
      .min(1)
      .describe("http://host:port, https://host:port or unix:/path/of/socket"),
    ...targetKeys(),
    tls: optionalMapping("TLS for https targets", {
      caFile: optional("Authorities, PEM; default: Node's", filePath()),
      certFile: optional("Client certificate, PEM", filePath()),
      keyFile: optional("Its key, PEM", filePath({ secret: true })),
      serverName: optional(
        "Name in the certificate; default: the target's host",
        z.string().refine(isHost, "must be a host name"),
      ),
    }),
    connections: whole(1, 65_535).default(256).describe("Connections to each target"),
    queue: settings("Queue for requests that arrive while all connections are in use", {
      length: whole(0, 100_000)
        .default(64)
        .describe("Requests that may wait for a connection; further ones get 503"),
      timeout: duration().prefault("1s").describe("Maximum wait, then 503"),
    }),
    timeouts: settings("Time limits for the backend", {
      connect: duration().prefault("5s").describe("Time to connect"),
      response: duration().prefault("60s").describe("Time until the response head"),
      idle: duration().prefault("5m").describe("Maximum silence within a body"),
    }),
    websocket: settings("Time limits for WebSockets", {
      handshake: duration().prefault("10s").describe("Time until the backend switches protocols"),
      idle: duration().prefault("5m").describe("Maximum silence on an open WebSocket"),
    }),
  });
  return z
    .record(entryName(), upstream.transform(withWeights))
    .default({})
    .describe("The backends, by name; required unless decisions.only");
}

function missingUpstreams({ whole, upstreams: names }: Written): PathProblem[] {
  if (names.length > 0 || decidesOnly(whole)) return [];
  const isLeftOut = whole["upstreams"] === undefined;
  const message = isLeftOut ? "is missing" : "must name at least one upstream";
  return [{ path: ["upstreams"], message }];
}

const RANGE = /^(\d{3})(?:-(\d{3}))?$/;

/** `200-399,404`, parsed to inclusive ranges. */
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

/** Whether a text is an address such as `10.0.0.10`, `10.0.0.10:53`, `2001:db8::1` or `[2001:db8::1]:53`. */
function isDnsServer(text: string): boolean {
  if (isIP(text) !== 0) return true;
  const [, v6, v4, port = "0"] = /^(?:\[([^\]]+)\]|([\d.]+)):(\d{1,5})$/.exec(text) ?? [];
  const sound = v6 === undefined ? isIP(v4 ?? "") === 4 : isIP(v6) === 6;
  return sound && Number(port) >= 1 && Number(port) <= 65_535;
}

function targetKeys() {
  return {
    protocol: oneOf(["http1", "http2", "h2c", "auto"], "http1").describe(
      "http2: over TLS; h2c: HTTP/2 without TLS; auto: what TLS negotiates",
    ),
    // Without it, a name is resolved with each new connection.
    resolve: optionalMapping("Makes each address of a name a target", {
      interval: duration({ min: 100 }).prefault("10s").describe("Longest time between lookups"),
      servers: z
        .array(z.string().refine(isDnsServer, "must be an IP address, which may have a port"))
        .min(1)
        .exactOptional()
        .describe("DNS servers; default: the system's resolver"),
      family: oneOf(["auto", "ipv4", "ipv6", "all"], "auto").describe(
        "auto: IPv4 if there is any, else IPv6",
      ),
      staleFor: duration()
        .prefault("10m")
        .describe("How long the last addresses stay in use while lookups find none"),
    }),
    balance: oneOf(BALANCES, "roundRobin").describe(
      "How to choose among targets with a free connection",
    ),
    health: optionalMapping("Checks each of several targets", {
      kind: oneOf(["http", "grpc"], "http").describe("Checks a path, or grpc.health.v1"),
      path: optional(
        "Kind http: path to GET",
        z.string().regex(/^\/[!-~]*$/, "must be a path, and may have a query"),
      ),
      status: optional("Kind http: healthy statuses; default: 200-399", statuses()),
      service: z
        .string()
        .regex(/^[\w.-]{0,127}$/, "must be the name of a service, such as orders.v1.Orders")
        .exactOptional()
        .describe("Kind grpc: the service; default: the whole server"),
      interval: duration({ min: 100 }).prefault("5s").describe("Time between checks"),
      timeout: duration().prefault("1s").describe("Time for the response"),
      healthy: whole(1, 100)
        .default(2)
        .describe("Successes in a row after which a target is used again"),
      unhealthy: whole(1, 100)
        .default(3)
        .describe("Failures in a row after which a target gets no requests"),
    }),
    ejection: settings("Stops using a target that fails requests, if there are others", {
      failures: whole(1, 10_000).default(5).describe("Failures in a row that eject a target"),
      for: duration()
        .prefault("30s")
        .describe(
          "Time without requests; each further ejection in a row is that much longer, up to ten times",
        ),
      most: percentage()
        .prefault("50%")
        .describe("Targets that may be ejected at once; never the last"),
    }),
    slowStart: duration()
      .exactOptional()
      .describe("Time until a target that is used again has its full share; default: none"),
  };
}

function certificateProblems({ tls }: Mapping, at: YamlPath): PathProblem[] {
  const { certFile, keyFile } = mappingAt(tls);
  if ((certFile === undefined) === (keyFile === undefined)) return [];
  const message = "needs certFile and keyFile together, or neither";
  return [{ path: [...at, "tls"], of: "key", message }];
}

interface TargetPlace {
  readonly url: string | undefined;
  readonly path: YamlPath;
}

function targetsOf({ targets }: Mapping, at: YamlPath): TargetPlace[] {
  return listAt(targets).map((target, index) => {
    const path = [...at, "targets", index];
    const url = textAt(target);
    return url === undefined
      ? { url: textAt(target, "url"), path: [...path, "url"] }
      : { url, path };
  });
}

/** The protocols that need a scheme. */
const SCHEMES: Readonly<Record<string, { readonly tls: boolean; readonly message: string }>> = {
  http2: { tls: true, message: "must be https:// for HTTP/2; without TLS it is protocol: h2c" },
  auto: { tls: true, message: "must be https:// for protocol: auto, which TLS negotiates" },
  h2c: { tls: false, message: "must not be https:// for h2c; over TLS it is protocol: http2" },
};

/** Reports targets whose scheme does not fit the protocol of their upstream, and health checks that do not fit it. */
function protocolProblems(upstream: Mapping, at: YamlPath): PathProblem[] {
  const scheme = SCHEMES[textAt(upstream, "protocol") ?? ""];
  const misfits = targetsOf(upstream, at).filter(
    ({ url }) =>
      scheme !== undefined && url !== undefined && url.startsWith("https:") !== scheme.tls,
  );
  return [
    ...misfits.map(({ path }) => ({ path, message: scheme?.message ?? "" })),
    ...healthProblems(upstream, [...at, "health"]),
  ];
}

/** Reports keys of a health check that do not fit its kind or the protocol of the targets. */
function healthProblems({ health, protocol }: Mapping, path: YamlPath): PathProblem[] {
  if (health === undefined) return [];
  const check = mappingAt(health);
  const stray = (keys: readonly string[], message: string): PathProblem[] =>
    keys
      .filter((key) => Object.hasOwn(check, key))
      .map((key) => ({ path: [...path, key], of: "key", message }));
  if (check["kind"] !== "grpc") {
    const missing: PathProblem[] = Object.hasOwn(check, "path")
      ? []
      : [{ path, of: "key", message: "needs path" }];
    return [...missing, ...stray(["service"], "needs kind: grpc")];
  }
  const message = "must not be grpc without protocol: http2 or h2c";
  const fits = protocol === "http2" || protocol === "h2c";
  return [
    ...(fits ? [] : [{ path: [...path, "kind"], message }]),
    ...stray(["path", "status"], "needs kind: http"),
  ];
}

/** Reports an upstream with `resolve` if none of its targets has a name. */
function resolveProblems(upstream: Mapping, at: YamlPath): PathProblem[] {
  if (upstream["resolve"] === undefined) return [];
  if (targetsOf(upstream, at).some(({ url }) => hasName(url ?? ""))) return [];
  const message = "has nothing to resolve: no target has a name";
  return [{ path: [...at, "resolve"], of: "key", message }];
}

/** Whether the host of a target is a name. The schema reports texts that are not targets. */
function hasName(target: string): boolean {
  const [, host] = /^https?:\/\/(\[[^\]]*\]|[^:/]*)/.exec(target) ?? [];
  return host !== undefined && !host.startsWith("[") && isIP(host) === 0;
}

/** Hosts in a target that mean this machine; connecting to an unspecified address also reaches it. */
const THIS_MACHINE = new Set(["localhost", "127.0.0.1", "::1", "0.0.0.0", "::"]);

/** Returns a comparable text for the address of each target; the protocol does not matter. */
export function placesOf(targets: readonly string[]): string[] {
  return targets.map((target) => {
    const { hostname, port, socketPath } = originOf(target);
    return socketPath ?? `${THIS_MACHINE.has(hostname) ? "localhost" : hostname}:${port}`;
  });
}

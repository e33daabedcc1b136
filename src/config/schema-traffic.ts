import { isIPv6 } from "node:net";
import { z } from "zod";
import { duration, filePath, isHost, name, NAME, text, urlPath } from "./fields.ts";
import { queue, rateLimit, routeLimits } from "./schema-limits.ts";

/** The sections about where requests go: `routes` and `upstreams`. */

const HOST_PATTERN = "must be a host name without a port, such as api.example.com or *.example.com";

function route() {
  const prefix = () =>
    urlPath()
      .refine((path) => !path.endsWith("/"), "must not end with a slash")
      .exactOptional();
  const groups = z.strictObject({
    any: z.array(text()).min(1).exactOptional().describe("One of these is enough"),
    all: z.array(text()).min(1).exactOptional().describe("Every one of these is needed"),
  });
  return z
    .strictObject({
      name: name().describe("The label in metrics and logs"),
      hosts: z
        .array(
          z
            .string()
            .refine((host) => isHost(host.replace(/^\*\./, "")), HOST_PATTERN)
            .transform((host) => host.toLowerCase()),
        )
        .min(1)
        .exactOptional()
        .describe("Host names; *.example.com is any one label. Left out: every host"),
      path: urlPath().exactOptional().describe("Prefix, on segment boundaries; / when left out"),
      exact: urlPath().exactOptional().describe("This one path"),
      methods: z
        .array(z.string().superRefine(checkMethod))
        .min(1)
        .exactOptional()
        .describe("Methods in upper case. Left out: every method"),
      auth: z
        .enum(["required", "none"])
        .default("required")
        .describe("Whether a token is needed; none is public"),
      mode: z
        .enum(["enforce", "monitor"])
        .default("enforce")
        .describe(
          "With monitor nobody is refused; who would be is forwarded without identity and counted",
        ),
      require: z
        .strictObject({
          groups: groups
            .refine(({ any, all }) => any !== undefined || all !== undefined, "needs any or all")
            .describe("Groups of the caller"),
        })
        .exactOptional()
        .describe("What else is asked of the caller (403)"),
      upstream: text().describe("Name of the upstream"),
      forwardAuthorization: z
        .enum(["strip", "keep"])
        .default("strip")
        .describe("What becomes of the Authorization header"),
      limits: routeLimits()
        .exactOptional()
        .describe("What a client may ask for at most, where it is another than everywhere"),
      rateLimit: rateLimit()
        .exactOptional()
        .describe("How many requests one caller may send (429); each thread counts for itself"),
      rewrite: z
        .strictObject({
          stripPrefix: prefix().describe("Removed from the path first"),
          addPrefix: prefix().describe("Put before the path then"),
        })
        .exactOptional()
        .describe("Changes of the path towards the backend"),
    })
    .transform(({ path, exact, ...rest }) =>
      exact === undefined ? { ...rest, path: path ?? "/" } : { ...rest, exact },
    );
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
    .describe("Which requests go where; left out: everything goes to the only upstream");
}

const TARGET = "must be http://host:port, https://host:port or unix:/path/of/socket";

/** An origin and nothing more: paths are the business of routes, credentials have no place in a configuration. */
function isTarget(target: string): boolean {
  if (/^unix:(?:\/\/)?\/[^/\s\p{Cc}][^\p{Cc}]*$/u.test(target)) return true;
  const [, v6, host, port = "1"] =
    /^https?:\/\/(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(target) ?? [];
  if (Number(port) < 1 || Number(port) > 65_535) return false;
  return v6 === undefined ? host !== undefined && isHost(host.replaceAll("_", "-")) : isIPv6(v6);
}

export function upstreamsSection(directory: string) {
  const upstream = z.strictObject({
    targets: z
      .array(z.string().refine(isTarget, TARGET))
      .min(1)
      .describe("http://host:port, https://host:port or unix:/path/of/socket, used in turn"),
    tls: z
      .strictObject({
        caFile: filePath(directory)
          .exactOptional()
          .describe("Authorities that are trusted instead of the system's"),
        certFile: filePath(directory).exactOptional().describe("Client certificate, PEM"),
        keyFile: filePath(directory).exactOptional().describe("Its private key, PEM"),
        serverName: z
          .string()
          .refine(isHost, "must be a host name")
          .exactOptional()
          .describe("The name that the certificate must bear; the target's host when left out"),
      })
      .exactOptional()
      .describe("TLS towards https targets"),
    connections: z.int().min(1).max(65_535).default(256).describe("Connections to each target"),
    queue: queue(),
    timeouts: z
      .strictObject({
        connect: duration().prefault("5s").describe("Until a connection stands"),
        response: duration().prefault("60s").describe("Until the head of the answer has arrived"),
        idle: duration().prefault("5m").describe("Silence within a body"),
      })
      .prefault({})
      .describe("How long the backend may take"),
    websocket: z
      .strictObject({
        handshake: duration().prefault("10s").describe("Until the backend has switched protocols"),
        idle: duration().prefault("5m").describe("Silence on an open WebSocket"),
      })
      .prefault({})
      .describe("How long a WebSocket may take"),
  });
  const names = z.string().regex(NAME, "is not a name: 1 to 64 of a-z, 0-9, _ and -");
  return z
    .record(names, upstream)
    .refine((upstreams) => Object.keys(upstreams).length > 0, "must name at least one upstream")
    .describe("The backends, by name");
}

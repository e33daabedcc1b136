import { UsageError } from "../command.ts";
import { listenAddress, Migration, type Sources } from "./migration.ts";
import { argsOf, blocksNamed, type Directive, parseNginx } from "./nginx-file.ts";
import { reportRest } from "./nginx-rest.ts";
import { addRoute, type NginxContext, sizeOf } from "./nginx-routes.ts";

/**
 * Translates the servers of an nginx configuration that use `auth_request`.
 *
 * @throws UsageError if the text is not an nginx configuration, or has no server with auth_request.
 */
export function fromNginx({ file }: Sources): Migration {
  if (file === undefined) throw new UsageError("--file must name an nginx configuration");
  const all = parseNginx(file);
  const servers = blocksNamed(all, "server").filter(({ block }) => authServices(block).length > 0);
  const [first] = servers;
  if (first === undefined) throw new UsageError("the file has no server with auth_request");
  const to = new Migration();
  to.configuration.tokens.keys = "keys";
  listener(first.block, to);
  const shared = { to, pools: poolsIn(all), rates: ratesIn(all) };
  for (const { block } of servers) addRoutes(block, servers.length > 1, shared);
  to.configuration.users = [{ kind: "file", path: "users.yaml" }];
  to.changed(
    "auth_request",
    "Sallyport does not use this service: put its users into users.yaml, and its other decisions into the backend",
  );
  to.useOwnKeys();
  identity(servers, to);
  reportRest(servers, to);
  return to;
}

/** Adds a route for each location of a server, except those of the `auth_request` services. */
function addRoutes(
  server: readonly Directive[],
  isOneOfSeveral: boolean,
  shared: Omit<NginxContext, "hosts">,
): void {
  const hosts = argsOf(server, "server_name")?.filter(
    (name) => name !== "_" && !name.startsWith("~"),
  );
  const context = { ...shared, hosts: isOneOfSeveral ? hosts : undefined };
  const services = new Set(authServices(server));
  for (const location of server) {
    const isService = services.has(location.args.at(-1) ?? "");
    if (location.name === "location" && !isService) addRoute(location, server, context);
  }
  if (!isOneOfSeveral && hosts !== undefined)
    shared.to.carried("server_name", "any host; see hosts of a route");
}

/** Returns the addresses in `auth_request` of this block and of the blocks in it. */
function authServices(block: readonly Directive[]): string[] {
  return block.flatMap(({ name, args, block: inner }) => [
    ...(name === "auth_request" && args[0] !== undefined && args[0] !== "off" ? [args[0]] : []),
    ...authServices(inner),
  ]);
}

function listener(block: readonly Directive[], to: Migration): void {
  const { server } = to.configuration;
  const [address = "80", ...words] = argsOf(block, "listen") ?? [];
  server.listen = listenAddress(address);
  const certFile = argsOf(block, "ssl_certificate")?.[0];
  const keyFile = argsOf(block, "ssl_certificate_key")?.[0];
  if (words.includes("ssl") && certFile !== undefined && keyFile !== undefined) {
    server.tls = { certFile, keyFile };
    to.carried("listen, ssl_certificate, ssl_certificate_key", "server.listen, server.tls");
  } else to.withoutTls("listen");
  const protocols = argsOf(block, "ssl_protocols");
  if (protocols !== undefined && typeof server.tls === "object") {
    server.tls["minVersion"] = protocols.includes("TLSv1.2") ? "TLSv1.2" : "TLSv1.3";
    to.carried("ssl_protocols", "server.tls.minVersion; nothing below TLSv1.2");
  }
  const size = argsOf(block, "client_max_body_size")?.[0];
  if (size !== undefined && size !== "0") {
    server.limits = { bodyBytes: sizeOf(size) };
    to.carried("client_max_body_size", "server.limits.bodyBytes, routes[].limits.bodyBytes");
  }
  const proxies = block.flatMap(({ name, args }) => (name === "set_real_ip_from" ? args : []));
  if (proxies.length === 0) return;
  server.trustedProxies = proxies;
  to.carried("set_real_ip_from", "server.trustedProxies");
}

function poolsIn(all: readonly Directive[]): Map<string, readonly string[]> {
  const pools = blocksNamed(all, "upstream").map(
    ({ args, block }) =>
      [
        args[0] ?? "",
        block.flatMap((each) => (each.name === "server" ? [each.args[0] ?? ""] : [])),
      ] as const,
  );
  return new Map(pools.filter(([, targets]) => targets.length > 0));
}

/** Reads zones that count by address, such as `limit_req_zone $binary_remote_addr zone=reports:1m rate=5r/s`. */
function ratesIn(all: readonly Directive[]) {
  const zones = [...all, ...blocksNamed(all, "http").flatMap(({ block }) => block)]
    .filter(({ name, args }) => name === "limit_req_zone" && args[0]?.endsWith("remote_addr"))
    .flatMap(({ args }) => {
      const words = args.join(" ");
      const [, zone] = / zone=([^ :]*)/.exec(words) ?? [];
      const [, requests, unit] = / rate=(\d+)r\/([sm])(?: |$)/.exec(words) ?? [];
      if (zone === undefined || requests === undefined) return [];
      return [[zone, { requests: Number(requests), within: unit === "m" ? "1m" : "1s" }] as const];
    });
  return new Map(zones);
}

/**
 * Translates headers whose values come from the response of the `auth_request` service, for example
 * `auth_request_set $user $upstream_http_x_user` with `proxy_set_header X-User $user`.
 */
function identity(servers: readonly Directive[], to: Migration): void {
  const all = servers.flatMap(({ block }) => [
    ...block,
    ...blocksNamed(block, "location").flatMap((location) => location.block),
  ]);
  const answered = new Set(
    all.filter(({ name }) => name === "auth_request_set").map(({ args }) => args[0] ?? ""),
  );
  const headers: Record<string, string> = {};
  for (const { name, args } of all) {
    const [header = "", value = ""] = args;
    const known = answered.has(value) || value.startsWith("$upstream_http_");
    if (name !== "proxy_set_header" || !known) continue;
    const kind = /group|role/i.test(header)
      ? "groups"
      : /user|subject|login|sub\b/i.test(header)
        ? "subject"
        : undefined;
    if (kind === undefined)
      to.lost(
        `proxy_set_header ${header}`,
        "the service is not used any more: see identity.claims",
      );
    else headers[kind] ??= header;
  }
  if (Object.keys(headers).length === 0) return;
  to.configuration.identity = { headers: { subject: "X-User", ...headers } };
  to.carried(
    "auth_request_set, proxy_set_header",
    `identity.headers: ${Object.values(headers).join(", ")}`,
  );
}

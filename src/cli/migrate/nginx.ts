import { type Draft, listenAddress, type Migrated, MigrationError, Report } from "./migration.ts";
import { argsOf, blocksNamed, type Directive, parseNginx } from "./nginx-file.ts";
import { addRoute, sizeOf } from "./nginx-routes.ts";
import { LOST, SILENT } from "./nginx-words.ts";

const UNDERSTOOD =
  /^(?:listen|server_name|ssl_certificate|ssl_certificate_key|ssl_protocols|client_max_body_size|auth_request|auth_request_set|proxy_set_header|proxy_pass|proxy_read_timeout|proxy_send_timeout|proxy_connect_timeout|limit_req|limit_req_zone|limit_req_status|set_real_ip_from|real_ip_)/;

/**
 * Translates the servers of an nginx configuration that use `auth_request`.
 *
 * @throws MigrationError if the text is not an nginx configuration, or has no server with auth_request.
 */
export function fromNginx({ file }: { readonly file?: string | undefined }): Migrated {
  if (file === undefined) throw new MigrationError("--file must name an nginx configuration");
  const all = parseNginx(file);
  const servers = blocksNamed(all, "server").filter(({ block = [] }) => usesAuthRequest(block));
  const [first] = servers;
  if (first?.block === undefined)
    throw new MigrationError("the file has no server with auth_request");
  const report = new Report();
  const draft: Draft = { server: {}, tokens: { keys: "keys" }, routes: [], upstreams: {} };
  listener(first.block, draft, report);
  const pools = poolsIn(all);
  const rates = ratesIn(all);
  for (const { block = [] } of servers) {
    const hosts = argsOf(block, "server_name")?.filter(
      (name) => name !== "_" && !name.startsWith("~"),
    );
    const shared = { draft, report, pools, rates };
    const context = {
      ...shared,
      hosts: servers.length > 1 && hosts !== undefined ? [...hosts] : undefined,
    };
    const asked = new Set(questions(block));
    for (const location of block) {
      const isAsked = asked.has(location.args.at(-1) ?? "");
      if (location.name === "location" && !isAsked) addRoute(location, block, context);
    }
    if (servers.length === 1 && hosts !== undefined)
      report.carried("server_name", "any host; see hosts of a route");
  }
  draft.users = [{ kind: "file", path: "users.yaml" }];
  report.changed(
    "auth_request",
    "Sallyport does not use this service: put its users into users.yaml, and its other decisions into the backend",
  );
  report.changed(
    "tokens.keys",
    "new: generate a key with sallyport keys generate --directory keys",
  );
  identity(servers, draft, report);
  rest(servers, report);
  return { configuration: draft, report: report.lines };
}

function usesAuthRequest(block: readonly Directive[]): boolean {
  return questions(block).length > 0;
}

/** Returns the addresses in `auth_request` of this block and of the blocks in it. */
function questions(block: readonly Directive[]): string[] {
  return block.flatMap(({ name, args, block: inner = [] }) => [
    ...(name === "auth_request" && args[0] !== undefined && args[0] !== "off" ? [args[0]] : []),
    ...questions(inner),
  ]);
}

function listener(block: readonly Directive[], { server }: Draft, report: Report): void {
  const [address = "80", ...words] = argsOf(block, "listen") ?? [];
  server.listen = listenAddress(address);
  const certFile = argsOf(block, "ssl_certificate")?.[0];
  const keyFile = argsOf(block, "ssl_certificate_key")?.[0];
  if (words.includes("ssl") && certFile !== undefined && keyFile !== undefined) {
    server.tls = { certFile, keyFile };
    report.carried("listen, ssl_certificate, ssl_certificate_key", "server.listen, server.tls");
  } else {
    server.tls = "off";
    report.changed("listen", "server.tls is off: passwords and tokens travel unencrypted");
  }
  const protocols = argsOf(block, "ssl_protocols");
  if (protocols !== undefined && typeof server.tls === "object") {
    server.tls["minVersion"] = protocols.includes("TLSv1.2") ? "TLSv1.2" : "TLSv1.3";
    report.carried("ssl_protocols", "server.tls.minVersion; nothing below TLSv1.2");
  }
  const size = argsOf(block, "client_max_body_size")?.[0];
  if (size !== undefined && size !== "0") {
    server.limits = { bodyBytes: sizeOf(size) };
    report.carried("client_max_body_size", "server.limits.bodyBytes, routes[].limits.bodyBytes");
  }
  const proxies = block
    .filter(({ name }) => name === "set_real_ip_from")
    .flatMap(({ args }) => args);
  if (proxies.length === 0) return;
  server.trustedProxies = proxies;
  report.carried("set_real_ip_from", "server.trustedProxies");
}

function poolsIn(all: readonly Directive[]): Map<string, string[]> {
  const pools = blocksNamed(all, "upstream").map(({ args, block = [] }): [string, string[]] => [
    args[0] ?? "",
    block.flatMap((each) => (each.name === "server" ? [each.args[0] ?? ""] : [])),
  ]);
  return new Map(pools.filter(([, targets]) => targets.length > 0));
}

/** Reads zones that count by address, such as `limit_req_zone $binary_remote_addr zone=reports:1m rate=5r/s`. */
function ratesIn(all: readonly Directive[]) {
  const zones = [...all, ...blocksNamed(all, "http").flatMap(({ block = [] }) => block)]
    .filter(
      ({ name, args }) => name === "limit_req_zone" && args[0]?.endsWith("remote_addr") === true,
    )
    .flatMap(({ args }) => {
      const zone = args
        .find((arg) => arg.startsWith("zone="))
        ?.slice(5)
        .split(":")[0];
      const [, requests, unit] =
        /^rate=(\d+)r\/([sm])$/.exec(args.find((arg) => arg.startsWith("rate=")) ?? "") ?? [];
      if (zone === undefined || requests === undefined) return [];
      return [[zone, { requests: Number(requests), within: unit === "m" ? "1m" : "1s" }] as const];
    });
  return new Map(zones);
}

/**
 * Translates headers whose values come from the response of the `auth_request` service, for example
 * `auth_request_set $user $upstream_http_x_user` with `proxy_set_header X-User $user`.
 */
function identity(servers: readonly Directive[], draft: Draft, report: Report): void {
  const all = servers
    .flatMap(({ block = [] }) => [
      block,
      ...blocksNamed(block, "location").map((each) => each.block ?? []),
    ])
    .flat();
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
      report.lost(
        `proxy_set_header ${header}`,
        "the service is not used any more: see identity.claims",
      );
    else if (headers[kind] === undefined) headers[kind] = header;
  }
  if (Object.keys(headers).length === 0) return;
  draft.identity = { headers: { subject: "X-User", ...headers } };
  report.carried(
    "auth_request_set, proxy_set_header",
    `identity.headers: ${Object.values(headers).join(", ")}`,
  );
}

/** Reports each remaining directive once. */
function rest(servers: readonly Directive[], report: Report): void {
  const seen = new Set<string>();
  const look = (directives: readonly Directive[]): void => {
    for (const { name, block = [] } of directives) {
      look(block);
      if (seen.has(name) || UNDERSTOOD.test(name)) continue;
      seen.add(name);
      const [, why] = LOST.find(([pattern]) => pattern.test(name)) ?? [];
      if (why !== undefined) report.lost(name, why);
      else if (!SILENT.test(name)) report.lost(name, "unknown to this command: see the guide");
    }
  };
  look(servers);
}

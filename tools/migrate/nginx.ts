import { UsageError } from "../../src/cli/command.ts";
import {
  listenAddress,
  Migration,
  reasonFor,
  type Reasons,
  type Sources,
  targetOf,
  UNKNOWN,
  unlessEmpty,
} from "./migration.ts";

/** One directive with its arguments and the directives in its braces. */
interface Directive {
  readonly name: string;
  readonly args: readonly string[];
  /** Empty for a directive that ends with a semicolon. */
  readonly block: readonly Directive[];
}

/** A comment, a quoted text, a brace or a semicolon, or a word. */
const TOKEN =
  /#[^\n]*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[{};]|(?:\$\{[^{}]*\}|\\.|[^\s{};"'#\\])(?:\$\{[^{}]*\}|\\.|[^\s{};\\])*/gs;
const DEEPEST = 20;

/** Parses the text of an nginx configuration, without its includes. @throws UsageError for invalid syntax. */
function parseNginx(text: string): Directive[] {
  const tokens = (text.match(TOKEN) ?? []).filter((token) => !token.startsWith("#"));
  let at = 0;

  function block(depth: number): Directive[] {
    if (depth > DEEPEST) throw new UsageError("the blocks of the file are nested too deeply");
    const directives: Directive[] = [];
    let words: string[] = [];
    while (at < tokens.length) {
      const token = tokens[at] ?? "";
      if (token === "}") break;
      at += 1;
      if (token === ";" || token === "{") {
        const [name = "", ...args] = words;
        const inner = token === "{" ? block(depth + 1) : [];
        if (token === "{" && tokens[at] !== "}")
          throw new UsageError("the file has a block without a closing brace");
        if (token === "{") at += 1;
        if (name !== "") directives.push({ name, args, block: inner });
        words = [];
      } else words.push(unquoted(token));
    }
    if (words.length > 0) throw new UsageError("the file has a directive without a semicolon");
    return directives;
  }

  const all = block(0);
  if (at < tokens.length) throw new UsageError("the file has an unmatched closing brace");
  return all;
}

function unquoted(token: string): string {
  return /^["']/.test(token) ? token.slice(1, -1).replaceAll(/\\(["'\\])/g, "$1") : token;
}

/** Returns all blocks with this name, at any depth. */
function blocksNamed(directives: readonly Directive[], name: string): Directive[] {
  return directives.flatMap((directive) => [
    ...(directive.name === name ? [directive] : []),
    ...blocksNamed(directive.block, name),
  ]);
}

/** Returns the arguments of the last directive with this name; undefined if there is none. */
function argsOf(directives: readonly Directive[], name: string): readonly string[] | undefined {
  return directives.findLast((directive) => directive.name === name)?.args;
}

/** Why directives have no counterpart. */
const LOST: Reasons = [
  [
    /^(?:root|alias|index|try_files|autoindex)$/,
    "Sallyport serves no files: keep nginx in front, or let the backend serve them",
  ],
  [/^(?:proxy_cache|gzip|brotli|expires|sub_filter|ssi)/, "keep nginx in front for it"],
  [/^http2/, "see server.http2"],
  [/^(?:add_header|more_set_headers|proxy_hide_header)$/, "see responseHeaders of a route"],
  [
    /^(?:satisfy|allow|deny|geo|valid_referers)$/,
    "see allow and deny of a route; no address may pass without a token",
  ],
  [
    /^auth_basic/,
    "clients log in with POST /api/authenticate and then send the token; kind: htpasswd reads the file",
  ],
  [
    /^(?:error_page|proxy_intercept_errors)$/,
    "responses pass unchanged; a refusal is 401 or 403 with JSON, without a redirect",
  ],
  [/^(?:rewrite|return|if|set|map)$/, "move decisions based on variables to the backend"],
  [
    /^(?:proxy_next_upstream|proxy_cookie|proxy_redirect|proxy_bind|proxy_ssl)/,
    "see upstreams and rewrite.responses",
  ],
  [/^ssl_(?:ciphers|prefer|session|dhparam|ecdh|stapling|conf|buffer)/, "the suites are fixed"],
  [/^limit_conn/, "see server.limits.connectionsPerAddress"],
  [/^include$/, "not followed: use the output of nginx -T, which contains all files"],
];

/** Directives that need no counterpart. */
const SILENT =
  /^(?:worker_|pid$|events$|error_log$|access_log$|log_format$|user$|daemon$|sendfile|tcp_|types|default_type|keepalive|proxy_http_version|proxy_buffer|proxy_busy|proxy_request_buffering|proxy_pass_request_body|proxy_set_body|internal$|server_tokens|charset|resolver|upstream$|server$|http$|location$|merge_slashes|send_timeout|client_(?:header|body)_(?:timeout|buffer|temp))/;

/** Directives that are translated. */
const UNDERSTOOD =
  /^(?:listen|server_name|ssl_certificate|ssl_certificate_key|ssl_protocols|client_max_body_size|auth_request|auth_request_set|proxy_set_header|proxy_pass|proxy_read_timeout|proxy_send_timeout|proxy_connect_timeout|limit_req|limit_req_zone|limit_req_status|set_real_ip_from|real_ip_)/;

/** Reports each remaining directive once. */
function reportRest(servers: readonly Directive[], to: Migration): void {
  const seen = new Set<string>();
  const look = (directives: readonly Directive[]): void => {
    for (const { name, block = [] } of directives) {
      look(block);
      if (seen.has(name) || UNDERSTOOD.test(name)) continue;
      seen.add(name);
      const why = reasonFor(name, LOST);
      if (why !== undefined || !SILENT.test(name)) to.lost(name, why ?? UNKNOWN);
    }
  };
  look(servers);
}

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
  const around = blocksNamed(all, "http").flatMap(({ block }) => block);
  for (const { block } of servers) addRoutes(block, around, servers.length > 1, shared);
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

/**
 * Adds a route for each location of a server, except those of the `auth_request` services.
 *
 * @param around the directives of all servers.
 */
function addRoutes(
  server: readonly Directive[],
  around: readonly Directive[],
  isOneOfSeveral: boolean,
  shared: Omit<NginxContext, "hosts">,
): void {
  const hosts = argsOf(server, "server_name")?.filter(
    (name) => name !== "_" && !name.startsWith("~"),
  );
  const context = { ...shared, hosts: isOneOfSeveral ? hosts : undefined };
  const services = new Set(authServices([...around, ...server]));
  const add = (locations: readonly Directive[], outer: readonly Directive[]): void => {
    for (const location of locations) {
      const isService = services.has(location.args.at(-1) ?? "");
      if (location.name !== "location" || isService) continue;
      addRoute(location, outer, context);
      add(location.block, [...outer, ...location.block]);
    }
  };
  add(server, [...around, ...server]);
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

/** The settings that all locations of a server share. */
interface NginxContext {
  readonly to: Migration;
  /** The targets of the `upstream` blocks, by name. */
  readonly pools: ReadonlyMap<string, readonly string[]>;
  /** The rates of `limit_req_zone`, by zone. */
  readonly rates: ReadonlyMap<string, { readonly requests: number; readonly within: string }>;
  /** The hosts of the routes; undefined if the file has only one server. */
  readonly hosts: readonly string[] | undefined;
}

/** Directives by which nginx itself refuses some or all callers. */
const REFUSING = ["auth_basic", "auth_jwt", "deny"];

/**
 * Adds a route for a location that is forwarded.
 *
 * @param outer the directives around it, the nearest last: it has those of them that it does not set itself.
 */
function addRoute(location: Directive, outer: readonly Directive[], context: NginxContext): void {
  const { to, hosts } = context;
  const { block, args } = location;
  const [modifier, path = modifier ?? "/"] = args;
  const setting = `location ${args.join(" ")}`;
  if (path.startsWith("@")) return to.lost(setting, "routes have no names for redirects");
  /** What nginx answers by itself, or by another location, reaches the backend of the route around it. */
  const makesNoRoute = (what: string, why: string): void =>
    to.lost(what, `${why}. Its requests take the route around it, public or not`);
  if (modifier === "~" || modifier === "~*") {
    return makesNoRoute(setting, "it is not a plain path: write routes with exact or path");
  }
  const passed = argsOf(block, "proxy_pass")?.[0];
  if (passed === undefined) return makesNoRoute(setting, "it forwards nothing");
  if (argsOf(block, "internal") !== undefined) {
    return makesNoRoute(setting, "it is internal: no client may ask for it");
  }
  const upstream = upstreamFor(passed, path, block, context);
  if (upstream === undefined) {
    const why = "its address has variables, or is not an http URL";
    return makesNoRoute(`${setting}: proxy_pass`, why);
  }
  const wordOf = (directive: string): string =>
    (argsOf(block, directive) ?? argsOf(outer, directive))?.[0] ?? "off";
  const service = wordOf("auth_request");
  const refusing = REFUSING.filter((directive) => wordOf(directive) !== "off");
  const isPublic = service === "off" && refusing.length === 0;
  const isExact = modifier === "=";
  const size = argsOf(block, "client_max_body_size")?.[0] ?? "0";
  const name = to.routeName(path === "/" ? "everything" : path);
  to.configuration.routes.push({
    name,
    hosts,
    ...(isExact ? { exact: path } : path === "/" ? {} : { path }),
    auth: isPublic ? "none" : undefined,
    require: service === "off" ? undefined : requirement(service, outer, to),
    rateLimit: rateLimit(block, context),
    limits: size === "0" ? undefined : { bodyBytes: sizeOf(size) },
    rewrite: rewriteOf(path, passed, isExact),
    upstream,
  });
  const made = `routes: ${name}`;
  if (service === "off" && !isPublic) {
    to.changed(setting, `${made}, which needs a token, instead of ${refusing.join(", ")}`);
  } else if (!isExact && !path.endsWith("/")) {
    to.changed(setting, `${made}: ${path} and all paths below it, but not ${path}x`);
  } else to.carried(setting, `${made}${isPublic ? ", public as before" : ""}`);
}

/** Returns the name of an upstream with the targets and time-outs of a location. */
function upstreamFor(
  passed: string,
  path: string,
  block: readonly Directive[],
  { to, pools }: NginxContext,
): string | undefined {
  const found = targetOf(passed);
  if (found === undefined || passed.includes("$")) return undefined;
  const host = URL.parse(passed)?.host ?? "";
  const scheme = passed.split("://", 1)[0];
  const read = durationIn(block, "proxy_read_timeout");
  const connect = durationIn(block, "proxy_connect_timeout");
  const made = {
    targets: pools.get(host)?.map((target) => `${scheme}://${target}`) ?? [found.target],
    timeouts: unlessEmpty({ connect, response: read, idle: read }),
  };
  const same = Object.entries(to.configuration.upstreams).find(
    ([, upstream]) => JSON.stringify(upstream) === JSON.stringify(made),
  );
  return same?.[0] ?? to.addUpstream(pools.has(host) ? host : path === "/" ? "app" : path, made);
}

/** With an address such as `/verify?group=reports`, the service decided whether the caller is in the group. */
function requirement(service: string, outer: readonly Directive[], to: Migration) {
  const location = outer.find(({ name, args }) => name === "location" && args.at(-1) === service);
  const address = argsOf(location?.block ?? [], "proxy_pass")?.[0] ?? "";
  const query = URL.parse(address)?.searchParams;
  const groups = ["group", "groups"]
    .flatMap((name) => query?.getAll(name) ?? [])
    .flatMap((each) => each.split(","));
  if (groups.length === 0) return undefined;
  to.changed(
    `auth_request ${service}`,
    `require.groups.any: ${groups.join(", ")}; check what else the service decided`,
  );
  return { groups: { any: groups } };
}

function rateLimit(block: readonly Directive[], { rates, to }: NginxContext) {
  const args = argsOf(block, "limit_req");
  if (args === undefined) return undefined;
  const value = (name: string) =>
    args.find((arg) => arg.startsWith(`${name}=`))?.slice(name.length + 1);
  const rate = rates.get(value("zone") ?? "");
  if (rate === undefined) {
    to.lost("limit_req", "its zone does not count by address");
    return undefined;
  }
  const burst = Number(value("burst"));
  to.carried("limit_req", "rateLimit, by address");
  return { ...rate, burst: burst > 0 ? burst : undefined, by: "address" };
}

/** The path in `proxy_pass` replaces the path of the location. */
function rewriteOf(path: string, passed: string, isExact: boolean) {
  const behind = /^https?:\/\/[^/]+(\/.*)$/.exec(passed)?.[1];
  if (behind === undefined) return undefined;
  const [strip = "", add = ""] = [path, behind].map((each) =>
    isExact ? each : each.replace(/\/$/, ""),
  );
  if (strip === add) return undefined;
  return {
    stripPrefix: strip === "" ? undefined : strip,
    addPrefix: add === "" || add === "/" ? undefined : add,
  };
}

/** Converts a size of nginx: its `10m` is 10 MiB. */
function sizeOf(text: string): string {
  const [, number = "0", unit = ""] = /^(\d+)([kmg]?)$/i.exec(text) ?? [];
  const units: Readonly<Record<string, string>> = { k: "KiB", m: "MiB", g: "GiB", "": "B" };
  return unit === "" && Number(number) % 1024 === 0 && number !== "0"
    ? `${Number(number) / 1024}KiB`
    : `${number}${units[unit.toLowerCase()] ?? "B"}`;
}

/** Converts a duration of nginx (`300s`, `5m`, `300`); whole minutes stay minutes. */
function durationIn(block: readonly Directive[], name: string): string | undefined {
  const text = argsOf(block, name)?.[0];
  if (text === undefined) return undefined;
  const [, number = "60", unit = "s"] = /^(\d+)(ms|[smhd])?$/.exec(text) ?? [];
  const seconds = { ms: 0.001, s: 1, m: 60, h: 3_600, d: 86_400 }[unit] ?? 1;
  const total = Number(number) * seconds;
  if (total < 1) return `${Math.round(total * 1000)}ms`;
  return total % 60 === 0 ? `${total / 60}m` : `${Math.round(total)}s`;
}

import { type Migration, targetOf, unlessEmpty } from "./migration.ts";
import { argsOf, type Directive } from "./nginx-file.ts";

/** The settings that all locations of a server share. */
export interface NginxContext {
  readonly to: Migration;
  /** The targets of the `upstream` blocks, by name. */
  readonly pools: ReadonlyMap<string, readonly string[]>;
  /** The rates of `limit_req_zone`, by zone. */
  readonly rates: ReadonlyMap<string, { readonly requests: number; readonly within: string }>;
  /** The hosts of the routes; undefined if the file has only one server. */
  readonly hosts: readonly string[] | undefined;
}

/** Adds a route for a location that is forwarded. */
export function addRoute(
  location: Directive,
  server: readonly Directive[],
  context: NginxContext,
): void {
  const { to, hosts } = context;
  const { block, args } = location;
  const [modifier, path = modifier ?? "/"] = args;
  const setting = `location ${args.join(" ")}`;
  if (modifier === "~" || modifier === "~*" || path.startsWith("@")) {
    return to.lost(setting, "it is not a plain path: write routes with exact or path");
  }
  const passed = argsOf(block, "proxy_pass")?.[0];
  if (passed === undefined) return to.lost(setting, "it forwards nothing");
  const upstream = upstreamFor(passed, path, block, context);
  if (upstream === undefined) {
    return to.lost(`${setting}: proxy_pass`, "its address has variables, or is not an http URL");
  }
  const service = argsOf(block, "auth_request")?.[0] ?? argsOf(server, "auth_request")?.[0];
  const isPublic = service === undefined || service === "off";
  const isExact = modifier === "=";
  const size = argsOf(block, "client_max_body_size")?.[0] ?? "0";
  const name = to.routeName(path === "/" ? "everything" : path);
  to.configuration.routes.push({
    name,
    hosts,
    ...(isExact ? { exact: path } : path === "/" ? {} : { path }),
    auth: isPublic ? "none" : undefined,
    require: isPublic ? undefined : requirement(service, server, to),
    rateLimit: rateLimit(block, context),
    limits: size === "0" ? undefined : { bodyBytes: sizeOf(size) },
    rewrite: rewriteOf(path, passed, isExact),
    upstream,
  });
  to.carried(setting, `routes: ${name}${isPublic ? ", public as before" : ""}`);
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
function requirement(service: string, server: readonly Directive[], to: Migration) {
  const location = server.find(({ name, args }) => name === "location" && args.at(-1) === service);
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
export function sizeOf(text: string): string {
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

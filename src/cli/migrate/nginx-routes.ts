import { type Draft, type DraftRoute, freeName, type Report, targetOf } from "./migration.ts";
import { argsOf, type Directive } from "./nginx-file.ts";

/** The settings that all locations of a server share. */
export interface NginxContext {
  readonly draft: Draft;
  readonly report: Report;
  /** The targets of the `upstream` blocks, by name. */
  readonly pools: ReadonlyMap<string, string[]>;
  /** The rates of `limit_req_zone`, by zone. */
  readonly rates: ReadonlyMap<string, { readonly requests: number; readonly within: string }>;
  /** The hosts of the routes; undefined if the file has only one server. */
  readonly hosts: string[] | undefined;
}

/** Adds a route for a location that is forwarded. */
export function addRoute(
  location: Directive,
  server: readonly Directive[],
  context: NginxContext,
): void {
  const { draft, report } = context;
  const block = location.block ?? [];
  const [modifier, path = modifier ?? "/"] = location.args;
  const setting = `location ${location.args.join(" ")}`;
  if (modifier === "~" || modifier === "~*" || path.startsWith("@")) {
    report.lost(setting, "it is not a plain path: write routes with exact or path");
    return;
  }
  const passed = argsOf(block, "proxy_pass")?.[0];
  if (passed === undefined) {
    report.lost(setting, "it forwards nothing");
    return;
  }
  const upstream = upstreamFor(passed, path, block, context);
  if (upstream === undefined) {
    report.lost(`${setting}: proxy_pass`, "its address has variables, or is not an http URL");
    return;
  }
  const asked = argsOf(block, "auth_request")?.[0] ?? argsOf(server, "auth_request")?.[0] ?? "off";
  const route: DraftRoute = {
    name: path === "/" ? "everything" : freeName(path, []),
    ...(context.hosts === undefined ? {} : { hosts: context.hosts }),
    ...(modifier === "=" ? { exact: path } : path === "/" ? {} : { path }),
    ...(asked === "off" ? { auth: "none" } : {}),
    ...requirement(asked, server, report),
    ...rateLimit(block, context),
    ...bodyLimit(block),
    ...rewriteOf(path, passed, modifier === "="),
    upstream,
  };
  route.name = freeName(
    route.name,
    draft.routes.map(({ name }) => name),
  );
  draft.routes.push(route);
  const how = asked === "off" ? ", public as before" : "";
  report.carried(setting, `routes: ${route.name}${how}`);
}

function upstreamFor(
  passed: string,
  path: string,
  block: readonly Directive[],
  { draft, pools }: NginxContext,
) {
  const found = targetOf(passed);
  if (found === undefined || passed.includes("$")) return undefined;
  const host = URL.parse(passed)?.host ?? "";
  const scheme = passed.split("://", 1)[0];
  const targets = pools.get(host)?.map((target) => `${scheme}://${target}`) ?? [found.target];
  const read = argsOf(block, "proxy_read_timeout")?.[0];
  const connect = argsOf(block, "proxy_connect_timeout")?.[0];
  const timeouts = {
    ...(connect === undefined ? {} : { connect: duration(connect) }),
    ...(read === undefined ? {} : { response: duration(read), idle: duration(read) }),
  };
  const made = { targets, ...(Object.keys(timeouts).length > 0 ? { timeouts } : {}) };
  const same = Object.entries(draft.upstreams).find(
    ([, upstream]) => JSON.stringify(upstream) === JSON.stringify(made),
  );
  if (same !== undefined) return same[0];
  const wanted = pools.has(host) ? host : path === "/" ? "app" : path;
  const name = freeName(wanted, Object.keys(draft.upstreams));
  draft.upstreams[name] = made;
  return name;
}

/** With an address such as `/verify?group=reports`, the service decided whether the caller is in the group. */
function requirement(asked: string, server: readonly Directive[], report: Report) {
  if (asked === "off") return {};
  const location = server.find(({ name, args }) => name === "location" && args.at(-1) === asked);
  const address = argsOf(location?.block ?? [], "proxy_pass")?.[0] ?? "";
  const query = URL.parse(address)?.searchParams;
  const groups = [...(query?.getAll("group") ?? []), ...(query?.getAll("groups") ?? [])].flatMap(
    (each) => each.split(","),
  );
  if (groups.length === 0) return {};
  report.changed(
    `auth_request ${asked}`,
    `require.groups.any: ${groups.join(", ")}; check what else the service decided`,
  );
  return { require: { groups: { any: groups } } };
}

function rateLimit(block: readonly Directive[], { rates, report }: NginxContext) {
  const args = argsOf(block, "limit_req");
  if (args === undefined) return {};
  const value = (name: string) =>
    args.find((arg) => arg.startsWith(`${name}=`))?.slice(name.length + 1);
  const rate = rates.get(value("zone") ?? "");
  if (rate === undefined) {
    report.lost("limit_req", "its zone does not count by address");
    return {};
  }
  const burst = Number(value("burst"));
  report.carried("limit_req", "rateLimit, by address");
  return { rateLimit: { ...rate, ...(burst > 0 ? { burst } : {}), by: "address" } } as const;
}

function bodyLimit(block: readonly Directive[]) {
  const size = argsOf(block, "client_max_body_size")?.[0];
  return size === undefined || size === "0" ? {} : { limits: { bodyBytes: sizeOf(size) } };
}

/** The path in `proxy_pass` replaces the path of the location. */
function rewriteOf(path: string, passed: string, exact: boolean): Pick<DraftRoute, "rewrite"> {
  const behind = /^https?:\/\/[^/]+(\/.*)$/.exec(passed)?.[1];
  if (behind === undefined) return {};
  const [strip, add] = [path, behind].map((each) => (exact ? each : each.replace(/\/$/, "")));
  if (strip === add) return {};
  return {
    rewrite: {
      ...(strip === "" || strip === undefined ? {} : { stripPrefix: strip }),
      ...(add === "" || add === undefined || add === "/" ? {} : { addPrefix: add }),
    },
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
function duration(text: string): string {
  const [, number = "60", unit = "s"] = /^(\d+)(ms|[smhd])?$/.exec(text) ?? [];
  const seconds = { ms: 0.001, s: 1, m: 60, h: 3_600, d: 86_400 }[unit] ?? 1;
  const total = Number(number) * seconds;
  if (total < 1) return `${Math.round(total * 1000)}ms`;
  return total % 60 === 0 ? `${total / 60}m` : `${Math.round(total)}s`;
}

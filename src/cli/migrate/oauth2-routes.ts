import { type DraftRoute, type Migration, targetOf } from "./migration.ts";
import type { Settings } from "./source-settings.ts";

/** Translates upstreams, public paths and groups. */
export function routes(settings: Settings, to: Migration): void {
  const { configuration } = to;
  const groups = settings.takeAll("allowed_groups", "allowed_roles");
  const response = settings.take("upstream_timeout");
  const main = upstreams(settings, to);
  const withUpstreams = [...configuration.routes];
  const publicRoutes: DraftRoute[] = [];
  for (const written of settings.takeAll("skip_auth_routes", "skip_auth_regex")) {
    const route = publicRoute(written, main, to);
    if (route === undefined) continue;
    configuration.routes.push(route);
    publicRoutes.push(route);
  }
  configuration.routes = [...publicRoutes, ...withUpstreams];
  if (main !== undefined) configuration.routes.push({ name: "everything", upstream: main });
  if (groups.length > 0) {
    for (const route of configuration.routes) {
      if (route.auth !== "none") route.require = { groups: { any: groups } };
    }
    to.carried("allowed_groups", "require.groups of every route that is not public");
  }
  if (response === undefined) return;
  for (const upstream of Object.values(configuration.upstreams)) {
    upstream.timeouts = { response };
  }
  to.carried("upstream_timeout", "upstreams.<name>.timeouts.response");
}

/** Returns the name of the upstream for all other paths, and adds routes for upstreams with a path. */
function upstreams(settings: Settings, to: Migration): string | undefined {
  let main: string | undefined;
  for (const written of settings.takeAll("upstreams")) {
    const found = targetOf(written);
    if (found === undefined) {
      to.lost(
        `upstreams ${written.replace(/:.*/s, "://…")}`,
        "upstreams must be HTTP servers: Sallyport serves no files and no fixed responses",
      );
      continue;
    }
    const { target, path } = found;
    const isMain = path === "" || path === "/";
    const name = to.addUpstream(isMain ? "app" : path, { targets: [target] });
    if (isMain) main = name;
    else
      to.configuration.routes.push({
        name,
        ...(path.endsWith("/") ? { path } : { exact: path }),
        upstream: name,
      });
    to.carried(`upstreams ${target}${path}`, `upstreams.${name}`);
  }
  return main;
}

/** Returns the route for a setting such as `GET=^/docs/` or `^/healthz$`; undefined if a path cannot express it. */
function publicRoute(
  written: string,
  upstream: string | undefined,
  to: Migration,
): DraftRoute | undefined {
  const [, method, not, pattern = ""] = /^(?:([A-Z]+)(!?)=)?(.*)$/s.exec(written) ?? [];
  const matched = not === "!" ? undefined : regexPath(pattern);
  const setting = `skip_auth_routes ${written}`;
  if (matched === undefined || upstream === undefined) {
    to.lost(setting, "it is not a plain path: write a route with exact or path, and auth: none");
    return undefined;
  }
  const { exact, path } = matched;
  const name = to.routeName(exact ?? path ?? "");
  if (path !== undefined && !path.endsWith("/"))
    to.changed(setting, `routes: ${path} and all paths below it, but not ${path}x`);
  else to.carried(setting, `routes: ${name}, with auth: none`);
  const methods = method === "GET" ? ["GET", "HEAD"] : method === undefined ? undefined : [method];
  return { name, exact, path, methods, auth: "none", upstream };
}

const LITERAL = /^(?:[A-Za-z0-9_~!@,/-]|\\[./_-])+$/;

/**
 * Converts a regular expression to a path: `^/docs/` is a prefix, `^/healthz$` one path. Returns undefined if a path
 * cannot express it.
 */
function regexPath(pattern: string): { exact?: string; path?: string } | undefined {
  const body = pattern.replace(/^\^/, "").replace(/(?:\.\*)?\$?$/, "");
  if (!pattern.startsWith("^/") || !LITERAL.test(body)) return undefined;
  const path = body.replaceAll(/\\(.)/g, "$1");
  return pattern.endsWith("$") && !pattern.endsWith(".*$") ? { exact: path } : { path };
}

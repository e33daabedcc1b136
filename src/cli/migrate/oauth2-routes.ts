import { type Draft, type DraftRoute, freeName, type Report, targetOf } from "./migration.ts";
import { regexPath } from "./path-patterns.ts";
import type { Settings } from "./source-settings.ts";

/** Translates upstreams, public paths and groups. */
export function routes(settings: Settings, draft: Draft, report: Report): void {
  const groups = settings.takeAll("allowed_groups", "allowed_roles");
  const timeout = settings.take("upstream_timeout");
  const main = upstreams(settings, draft, report);
  const publicRoutes = settings
    .takeAll("skip_auth_routes", "skip_auth_regex")
    .flatMap((written) => {
      const route = publicRoute(written, main, draft.routes);
      if (route === undefined) {
        report.lost(
          `skip_auth_routes ${written}`,
          "it is not a plain path: write a route with exact or path, and auth: none",
        );
        return [];
      }
      const path = route.exact ?? route.path ?? "";
      if (route.path !== undefined && !path.endsWith("/")) {
        report.changed(
          `skip_auth_routes ${written}`,
          `routes: ${path} and all paths below it, but not ${path}x`,
        );
      } else
        report.carried(`skip_auth_routes ${written}`, `routes: ${route.name}, with auth: none`);
      draft.routes.push(route);
      return [route];
    });
  draft.routes = [
    ...publicRoutes,
    ...draft.routes.filter((route) => !publicRoutes.includes(route)),
  ];
  if (main !== undefined) draft.routes.push({ name: freeName("everything", []), upstream: main });
  if (groups.length > 0) {
    for (const route of draft.routes) {
      if (route.auth !== "none") route.require = { groups: { any: groups } };
    }
    report.carried("allowed_groups", "require.groups of every route that is not public");
  }
  if (timeout === undefined) return;
  for (const upstream of Object.values(draft.upstreams)) upstream.timeouts = { response: timeout };
  report.carried("upstream_timeout", "upstreams.<name>.timeouts.response");
}

/** Returns the name of the upstream for all other paths, and adds routes for upstreams with a path. */
function upstreams(settings: Settings, draft: Draft, report: Report): string | undefined {
  let main: string | undefined;
  for (const written of settings.takeAll("upstreams")) {
    const found = targetOf(written);
    if (found === undefined) {
      report.lost(
        `upstreams ${written.replace(/:.*/s, "://…")}`,
        "upstreams must be HTTP servers: Sallyport serves no files and no fixed responses",
      );
      continue;
    }
    const { target, path } = found;
    const names = Object.keys(draft.upstreams);
    const name = freeName(path === "" || path === "/" ? "app" : path, names);
    draft.upstreams[name] = { targets: [target] };
    if (path === "" || path === "/") main = name;
    else
      draft.routes.push({
        name,
        ...(path.endsWith("/") ? { path } : { exact: path }),
        upstream: name,
      });
    report.carried(`upstreams ${target}${path}`, `upstreams.${name}`);
  }
  return main;
}

/** Returns the route for a setting such as `GET=^/docs/` or `^/healthz$`; undefined if a path cannot express it. */
function publicRoute(written: string, upstream: string | undefined, others: readonly DraftRoute[]) {
  const [, method, not, pattern = ""] = /^(?:([A-Z]+)(!?)=)?(.*)$/s.exec(written) ?? [];
  const path = not === "!" ? undefined : regexPath(pattern);
  if (path === undefined || upstream === undefined) return undefined;
  const text = path.exact ?? path.path ?? "";
  const route: DraftRoute = {
    name: freeName(
      text,
      others.map(({ name }) => name),
    ),
    ...path,
    ...(method === undefined ? {} : { methods: method === "GET" ? ["GET", "HEAD"] : [method] }),
    ...{ auth: "none", upstream },
  };
  return route;
}

import { OWN_ROUTES } from "../observe/label-words.ts";
import { suggesting } from "./fault.ts";
import type { Fault } from "./fault.ts";
import { listAt, mappingAt, textAt } from "./untyped.ts";

/** What concerns several keys of a route, or several routes, as they were written. */
export function routeFaults(written: unknown, upstreams: readonly string[]): Fault[] {
  if (written === undefined) {
    if (upstreams.length < 2) return [];
    return [
      { path: ["routes"], message: "is missing: there is more than one upstream to choose from" },
    ];
  }
  const routes = listAt(written).map(mappingAt);
  return [
    ...routes.flatMap((route, index) => singleRouteFaults(route, index, upstreams)),
    ...nameFaults(routes),
    ...overlapFaults(routes),
  ];
}

type WrittenRoute = Readonly<Record<string, unknown>>;

function singleRouteFaults(
  route: WrittenRoute,
  index: number,
  upstreams: readonly string[],
): Fault[] {
  const faults: Fault[] = [];
  const upstream = textAt(route["upstream"]);
  if (upstream !== undefined && !upstreams.includes(upstream)) {
    const fault = {
      path: ["routes", index, "upstream"],
      message: "names an upstream that does not exist",
    };
    faults.push(suggesting(fault, upstream, upstreams));
  }
  if (route["path"] !== undefined && route["exact"] !== undefined) {
    const message = "and path exclude each other";
    faults.push({ path: ["routes", index, "exact"], of: "key", message });
  }
  if (route["auth"] === "none" && route["require"] !== undefined) {
    const message = "asks something of the caller, who is unknown with auth: none";
    faults.push({ path: ["routes", index, "require"], of: "key", message });
  }
  if (route["auth"] === "none" && route["mode"] === "monitor") {
    const message = "watches who would be refused, and with auth: none nobody is";
    faults.push({ path: ["routes", index, "mode"], of: "key", message });
  }
  if (route["auth"] === "none" && mappingAt(route["rateLimit"])["by"] === "subject") {
    const message = "counts callers, who are unknown with auth: none";
    faults.push({ path: ["routes", index, "rateLimit", "by"], message });
  }
  const stripped = textAt(mappingAt(route["rewrite"])["stripPrefix"]);
  if (stripped !== undefined && !isWithin(pathOf(route), stripped)) {
    const message = "must be the beginning of the route's path, up to a slash or its end";
    faults.push({ path: ["routes", index, "rewrite", "stripPrefix"], message });
  }
  return faults;
}

function pathOf(route: WrittenRoute): string {
  return textAt(route["exact"]) ?? textAt(route["path"]) ?? "/";
}

function isWithin(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(prefix.endsWith("/") ? prefix : `${prefix}/`);
}

function nameFaults(routes: readonly WrittenRoute[]): Fault[] {
  const seen = new Set<string>();
  return routes.flatMap((route, index) => {
    const name = textAt(route["name"]);
    if (name === undefined) return [];
    const path = ["routes", index, "name"];
    if (OWN_ROUTES.includes(name)) return [{ path, message: "is reserved: choose another" }];
    if (seen.has(name)) return [{ path, message: "is the name of another route already" }];
    seen.add(name);
    return [];
  });
}

/** Two routes that would answer the same requests, neither being more specific. */
function overlapFaults(routes: readonly WrittenRoute[]): Fault[] {
  const seen = new Map<string, number>();
  return routes.flatMap((route, index) => {
    const keys = requestsOf(route);
    const earlier = keys.map((key) => seen.get(key)).find((found) => found !== undefined);
    for (const key of keys) seen.set(key, seen.get(key) ?? index);
    if (earlier === undefined) return [];
    const message = `answers the same requests as routes[${earlier}]`;
    return [{ path: ["routes", index], message }];
  });
}

/** One word for every combination of host, path and method that a route names. */
function requestsOf(route: WrittenRoute): string[] {
  const kind = route["exact"] === undefined ? "prefix" : "exact";
  const words = (key: string): string[] =>
    route[key] === undefined ? ["any"] : listAt(route[key]).map((word) => textAt(word) ?? "");
  const hosts = new Set(words("hosts").map((host) => host.toLowerCase()));
  const methods = new Set(words("methods"));
  return [...hosts].flatMap((host) =>
    [...methods].map((method) => `${host} ${method} ${kind} ${pathOf(route)}`),
  );
}

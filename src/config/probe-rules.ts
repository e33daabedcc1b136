import { suggesting, type Fault } from "./fault.ts";
import { listAt, mappingAt, textAt } from "./untyped.ts";

/** What the admin listener answers itself. */
const OWN_PATHS = ["/metrics", "/livez", "/readyz", "/startupz"];
const OWN_PREFIXES = ["/-/", "/.well-known/"];

/** What concerns several keys of `admin.probes`, as they were written. */
export function probeFaults(written: unknown, upstreams: readonly string[]): Fault[] {
  const seen = new Set<string>();
  return listAt(mappingAt(written)["probes"]).flatMap((entry, index) => {
    const probe = mappingAt(entry);
    const faults: Fault[] = [];
    const path = textAt(probe["path"]) ?? "";
    if (OWN_PATHS.includes(path) || OWN_PREFIXES.some((prefix) => path.startsWith(prefix))) {
      faults.push({ path: ["admin", "probes", index, "path"], message: "is Sallyport's own" });
    }
    if (path !== "" && seen.has(path)) {
      const message = "is the path of another probe already";
      faults.push({ path: ["admin", "probes", index, "path"], message });
    }
    seen.add(path);
    const upstream = textAt(probe["upstream"]);
    if (upstream !== undefined && !upstreams.includes(upstream)) {
      const message = "names an upstream that does not exist";
      const place = ["admin", "probes", index, "upstream"];
      faults.push(suggesting({ path: place, message }, upstream, upstreams));
    }
    return faults;
  });
}

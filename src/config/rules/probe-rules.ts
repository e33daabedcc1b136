import { withSuggestion, type PathProblem } from "../path-problem.ts";
import { listAt, mappingAt, textAt } from "../schema/untyped.ts";

/** Paths that the admin listener answers itself. */
const OWN_PATHS = ["/metrics", "/livez", "/readyz", "/startupz"];
const OWN_PREFIXES = ["/-/", "/.well-known/"];

/** Checks rules that involve several keys of `admin.probes`, on the unvalidated value. */
export function probeProblems(written: unknown, upstreams: readonly string[]): PathProblem[] {
  const seen = new Set<string>();
  return listAt(mappingAt(written)["probes"]).flatMap((entry, index) => {
    const probe = mappingAt(entry);
    const problems: PathProblem[] = [];
    const path = textAt(probe["path"]) ?? "";
    if (OWN_PATHS.includes(path) || OWN_PREFIXES.some((prefix) => path.startsWith(prefix))) {
      problems.push({ path: ["admin", "probes", index, "path"], message: "is Sallyport's own" });
    }
    if (path !== "" && seen.has(path)) {
      const message = "is the path of another probe already";
      problems.push({ path: ["admin", "probes", index, "path"], message });
    }
    seen.add(path);
    const upstream = textAt(probe["upstream"]);
    if (upstream !== undefined && !upstreams.includes(upstream)) {
      const message = "names an upstream that does not exist";
      const place = ["admin", "probes", index, "upstream"];
      problems.push(withSuggestion({ path: place, message }, upstream, upstreams));
    }
    return problems;
  });
}

import { isIP } from "node:net";
import type { PathProblem } from "../path-problem.ts";
import { listAt, mappingAt, textAt } from "../schema/untyped.ts";

/** Reports upstreams with `resolve` if none of their targets has a name. */
export function targetProblems(upstreams: unknown): PathProblem[] {
  return Object.entries(mappingAt(upstreams)).flatMap(([name, upstream]) => {
    const { resolve, targets } = mappingAt(upstream);
    if (resolve === undefined) return [];
    const named = listAt(targets).some((target) =>
      hasName(textAt(target) ?? textAt(mappingAt(target)["url"]) ?? ""),
    );
    if (named) return [];
    const message = "has nothing to resolve: no target has a name";
    return [{ path: ["upstreams", name, "resolve"], of: "key" as const, message }];
  });
}

/** Whether the host of a target is a name. The schema reports texts that are not targets. */
function hasName(target: string): boolean {
  const [, host] = /^https?:\/\/(\[[^\]]*\]|[^:/]*)/.exec(target) ?? [];
  return host !== undefined && !host.startsWith("[") && isIP(host) === 0;
}

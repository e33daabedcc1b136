import type { YamlPath } from "../../lib/files/positioned-yaml.ts";
import type { PathProblem } from "../path-problem.ts";
import { listAt, mappingAt, textAt } from "../schema/untyped.ts";

/** Reports header names that routes use although `server.underscoreHeaders` drops or rejects them. */
export function underscoreProblems(server: unknown, routes: unknown): PathProblem[] {
  const policy = mappingAt(server)["underscoreHeaders"];
  if (policy !== "drop" && policy !== "reject") return [];
  const message = `never arrives with server.underscoreHeaders: ${policy}`;
  const problem = (name: unknown, path: YamlPath, of: "key" | "value"): PathProblem[] =>
    textAt(name)?.includes("_") === true ? [{ path, of, message }] : [];
  return listAt(routes).flatMap((route, index) => {
    const { headers, tokenFrom } = mappingAt(route);
    const at = ["routes", index];
    return [
      ...Object.keys(mappingAt(headers)).flatMap((name) =>
        problem(name, [...at, "headers", name], "key"),
      ),
      ...listAt(tokenFrom).flatMap((place, i) =>
        problem(mappingAt(place)["header"], [...at, "tokenFrom", i, "header"], "value"),
      ),
    ];
  });
}

import type { YamlPath } from "../../lib/files/positioned-yaml.ts";
import { foldedName } from "../../lib/http/header-values.ts";
import { fieldSource } from "../../observe/log/access-log.ts";
import type { PathProblem } from "../path-problem.ts";
import { listAt, type Mapping, mappingAt, textAt } from "../schema/untyped.ts";
import { repeated, type Written } from "./written.ts";

/** Rules about the headers that routes change, compare or take tokens from, and that the log shows. */

/** Checks that a route changes no identity header, and no header twice. */
export function headerProblems(route: Mapping, at: YamlPath, { whole }: Written): PathProblem[] {
  const { headers, claims } = mappingAt(whole, "identity");
  const callers = new Set(
    [...Object.values(mappingAt(headers)), ...Object.keys(mappingAt(claims))].map((name) =>
      foldedName(textAt(name) ?? ""),
    ),
  );
  const [request = [], ...others] = ["requestHeaders", "responseHeaders"].map((key) =>
    changedNames(route[key], [...at, key]),
  );
  const message = "must not be one of identity.headers, which tell the backend who is calling";
  return [
    ...request
      .filter(({ folded }) => callers.has(folded))
      .map(({ path, of }) => ({ path, of, message })),
    ...[request, ...others].flatMap((names) =>
      repeated(names, ({ folded }) => folded).map(({ path, of }) => ({
        path,
        of,
        message: "must not be changed twice",
      })),
    ),
  ];
}

/** A header that a route changes; its name with `_` as `-`, since CGI backends do not distinguish them. */
interface ChangedName extends Required<Pick<PathProblem, "path" | "of">> {
  readonly folded: string;
}

function changedNames(changes: unknown, path: YamlPath): ChangedName[] {
  return [
    ...["set", "add"].flatMap((key) =>
      Object.keys(mappingAt(changes, key)).map((name): ChangedName => {
        return { path: [...path, key, name], of: "key", folded: foldedName(name) };
      }),
    ),
    ...listAt(changes, "remove").map((name, index): ChangedName => {
      const folded = foldedName(textAt(name) ?? "");
      return { path: [...path, "remove", index], of: "value", folded };
    }),
  ];
}

/** Reports header names that a route uses although `server.underscoreHeaders` drops or rejects them. */
export function underscoreProblems(
  { headers, tokenFrom }: Mapping,
  at: YamlPath,
  { whole }: Written,
): PathProblem[] {
  const policy = textAt(whole, "server", "underscoreHeaders");
  if (policy !== "drop" && policy !== "reject") return [];
  const message = `never arrives with server.underscoreHeaders: ${policy}`;
  const problem = (name: string | undefined, path: YamlPath, of: "key" | "value"): PathProblem[] =>
    name?.includes("_") === true ? [{ path: [...at, ...path], of, message }] : [];
  return [
    ...Object.keys(mappingAt(headers)).flatMap((name) => problem(name, ["headers", name], "key")),
    ...listAt(tokenFrom).flatMap((place, i) =>
      problem(textAt(place, "header"), ["tokenFrom", i, "header"], "value"),
    ),
  ];
}

/** Checks that no field of the access line is a header from which a route reads tokens. */
export function loggedTokenProblems({ whole, routes }: Written): PathProblem[] {
  const withTokens = new Set(
    routes
      .flatMap(({ tokenFrom }) => listAt(tokenFrom))
      .map((place) => textAt(place, "header")?.toLowerCase()),
  );
  const message = "names a header that tokens are taken from, which is never logged";
  return Object.entries(mappingAt(whole, "log", "fields")).flatMap(([field, written]) => {
    const source = fieldSource(textAt(written) ?? "");
    return source?.kind === "header" && withTokens.has(source.name.toLowerCase())
      ? [{ path: ["log", "fields", field], message }]
      : [];
  });
}

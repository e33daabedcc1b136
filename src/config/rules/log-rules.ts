import { fieldSource } from "../../observe/log/create-access-fields.ts";
import type { PathProblem } from "../path-problem.ts";
import { listAt, mappingAt, textAt } from "../schema/untyped.ts";

/** Checks that no field of the access line is a header from which a route reads tokens. */
export function logProblems(log: unknown, routes: unknown): PathProblem[] {
  const withTokens = new Set(
    listAt(routes).flatMap((route) =>
      listAt(mappingAt(route)["tokenFrom"]).flatMap(
        (place) => textAt(mappingAt(place)["header"])?.toLowerCase() ?? [],
      ),
    ),
  );
  return Object.entries(mappingAt(mappingAt(log)["fields"])).flatMap(([field, written]) => {
    const source = fieldSource(textAt(written) ?? "");
    if (source?.kind !== "header" || !withTokens.has(source.name.toLowerCase())) return [];
    const message = "names a header that tokens are taken from, which is never logged";
    return [{ path: ["log", "fields", field], message }];
  });
}

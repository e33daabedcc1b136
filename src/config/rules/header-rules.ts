import type { YamlPath } from "../../lib/files/positioned-yaml.ts";
import { foldedName } from "../../lib/http/folded-name.ts";
import type { PathProblem } from "../path-problem.ts";
import { listAt, mappingAt, textAt } from "../schema/untyped.ts";

/** Checks that no route changes an identity header, or changes any header twice. */
export function headerProblems(routes: unknown, identity: unknown): PathProblem[] {
  const { headers, claims } = mappingAt(identity);
  const callers = new Set(
    [...Object.values(mappingAt(headers)), ...Object.keys(mappingAt(claims))].map((name) =>
      foldedName(textAt(name) ?? ""),
    ),
  );
  return listAt(routes).flatMap((route, index) => {
    const path = (key: string) => ["routes", index, key];
    const { requestHeaders, responseHeaders } = mappingAt(route);
    return [
      ...callerProblems(requestHeaders, path("requestHeaders"), callers),
      ...[requestHeaders, responseHeaders].flatMap((changes, at) =>
        repetitions(changes, path(at === 0 ? "requestHeaders" : "responseHeaders")),
      ),
    ];
  });
}

interface Named {
  readonly path: YamlPath;
  readonly of: "key" | "value";
  readonly name: string;
}

function namesIn(changes: unknown, path: YamlPath): Named[] {
  const { set, add, remove } = mappingAt(changes);
  return [
    ...Object.keys(mappingAt(set)).map((name): Named => {
      return { path: [...path, "set", name], of: "key", name };
    }),
    ...Object.keys(mappingAt(add)).map((name): Named => {
      return { path: [...path, "add", name], of: "key", name };
    }),
    ...listAt(remove).map((name, index): Named => {
      return { path: [...path, "remove", index], of: "value", name: textAt(name) ?? "" };
    }),
  ];
}

function callerProblems(
  changes: unknown,
  path: YamlPath,
  callers: ReadonlySet<string>,
): PathProblem[] {
  return namesIn(changes, path)
    .filter(({ name }) => callers.has(foldedName(name)))
    .map((named) => ({
      path: named.path,
      of: named.of,
      message: "must not be one of identity.headers, which tell the backend who is calling",
    }));
}

function repetitions(changes: unknown, path: YamlPath): PathProblem[] {
  const seen = new Set<string>();
  return namesIn(changes, path).flatMap((named) => {
    const folded = foldedName(named.name);
    if (!seen.has(folded)) {
      seen.add(folded);
      return [];
    }
    return [{ path: named.path, of: named.of, message: "must not be changed twice" }];
  });
}

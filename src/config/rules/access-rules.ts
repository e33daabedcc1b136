import type { PathProblem } from "../path-problem.ts";
import { mappingAt } from "../schema/untyped.ts";

/** Reports keys that need an authenticated caller, on routes where the caller may be anonymous. */
export function accessProblems(
  route: Readonly<Record<string, unknown>>,
  index: number,
): PathProblem[] {
  const { auth } = route;
  if (auth !== "none" && auth !== "optional") return [];
  const useless = (key: string, message: string): PathProblem[] =>
    route[key] === undefined ? [] : [{ path: ["routes", index, key], of: "key", message }];
  const message =
    auth === "none"
      ? "must not be subject with auth: none, where callers are unknown"
      : "must not be subject with auth: optional, where callers may be unknown";
  const bySubject = ["rateLimit", "concurrency"].flatMap((key): PathProblem[] =>
    mappingAt(route[key])["by"] === "subject"
      ? [{ path: ["routes", index, key, "by"], message }]
      : [],
  );
  if (auth === "optional") {
    const pointless = "does not protect with auth: optional: a request without a token passes";
    return [...useless("require", pointless), ...bySubject];
  }
  return [
    ...useless("require", "has no effect with auth: none, where the caller is unknown"),
    ...useless("tokenFrom", "has no effect with auth: none, which ignores tokens"),
    ...(route["mode"] === "monitor"
      ? useless("mode", "has no effect with auth: none, which refuses nobody")
      : []),
    ...bySubject,
  ];
}

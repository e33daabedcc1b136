import type { YamlPath } from "../../lib/files/positioned-yaml.ts";
import type { PathProblem } from "../path-problem.ts";
import { type Mapping, mappingAt, textAt } from "../schema/untyped.ts";
import { unknownIssuers, unknownName, type Written } from "./written.ts";

/** Rules about the callers of a route. */

/** Reports keys that need an authenticated caller, on routes where the caller may be anonymous. */
export function accessProblems(route: Mapping, at: YamlPath): PathProblem[] {
  const { auth } = route;
  if (auth !== "none" && auth !== "optional") return [];
  const useless = (key: string, message: string): PathProblem[] =>
    route[key] === undefined ? [] : [{ path: [...at, key], of: "key", message }];
  if (auth === "optional") {
    return useless(
      "require",
      "does not protect with auth: optional: a request without a token passes",
    );
  }
  const message = "must not be subject with auth: none, where callers are unknown";
  const bySubject = ["rateLimit", "concurrency"]
    .filter((key) => textAt(route, key, "by") === "subject")
    .map((key) => ({ path: [...at, key, "by"], message }));
  return [
    ...useless("require", "has no effect with auth: none, where the caller is unknown"),
    ...useless("tokenFrom", "has no effect with auth: none, which ignores tokens"),
    ...(route["mode"] === "monitor"
      ? useless("mode", "has no effect with auth: none, which refuses nobody")
      : []),
    ...bySubject,
  ];
}

/** Checks that a route names an existing entry of `authorization`, and has callers to authorize. */
export function authorizeProblems(route: Mapping, at: YamlPath, { whole }: Written): PathProblem[] {
  const name = textAt(route, "authorize");
  const names = Object.keys(mappingAt(whole, "authorization"));
  const path = [...at, "authorize"];
  if (name === undefined) return [];
  if (!names.includes(name)) {
    return unknownName(name, names, path, "names an entry of authorization that does not exist");
  }
  if ((route["auth"] ?? "required") === "required") return [];
  return [
    { path, message: "needs auth: required: without a token, there is no caller to authorize" },
  ];
}

/** Checks that assertions for a route can be made. */
export function assertionProblems(route: Mapping, at: YamlPath, { whole }: Written): PathProblem[] {
  if (route["assertion"] !== true) return [];
  const path = [...at, "assertion"];
  if (mappingAt(whole, "tokens")["assertion"] === undefined) {
    return [{ path, message: "needs tokens.assertion" }];
  }
  if (route["auth"] !== "none") return [];
  return [{ path, message: "needs a caller, and a route with auth: none has no caller" }];
}

/** Reports issuers that a route requires although their tokens are not accepted. */
export function requiredIssuerProblems(route: Mapping, at: YamlPath, written: Written) {
  const { issuers } = mappingAt(route, "require");
  return unknownIssuers(issuers, [...at, "require", "issuers"], written);
}

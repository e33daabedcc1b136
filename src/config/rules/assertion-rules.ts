import type { PathProblem } from "../path-problem.ts";
import { listAt, mappingAt, textAt } from "../schema/untyped.ts";

/** Checks that assertions can be signed and verified, and can never be accepted as tokens. */
export function assertionProblems(tokens: unknown, routes: unknown): PathProblem[] {
  const written = mappingAt(tokens);
  const assertion = written["assertion"];
  const problems = routeProblems(routes, assertion !== undefined);
  if (assertion === undefined) return problems;
  const path = ["tokens", "assertion"];
  const audience = textAt(mappingAt(assertion)["audience"]);
  if (audience === (textAt(written["audience"]) ?? "sallyport")) {
    const message = "is the audience of tokens, too: an assertion could be sent as a token";
    problems.push({ path: [...path, "audience"], message });
  }
  return [...problems, ...keyProblems(written, mappingAt(assertion), path)];
}

type Mapping = ReturnType<typeof mappingAt>;

function keyProblems(tokens: Mapping, assertion: Mapping, path: string[]): PathProblem[] {
  const algorithm = textAt(tokens["algorithm"]) ?? "ES256";
  const own = textAt(assertion["algorithm"]);
  const keys = textAt(assertion["keys"]);
  const shared = keys === undefined && tokens["keys"] !== undefined;
  if (shared && own !== undefined && own !== algorithm) {
    const message = `needs tokens.assertion.keys: the keys of tokens.keys sign ${algorithm}`;
    return [{ path: [...path, "algorithm"], message }];
  }
  if (keys !== undefined && keys === textAt(tokens["keys"])) {
    const message = "is the directory of tokens.keys: assertions need keys of their own";
    return [{ path: [...path, "keys"], message }];
  }
  if (own === undefined && algorithm.startsWith("HS")) {
    const message =
      "needs another algorithm: a backend that verifies an HMAC has the key to forge one";
    return [{ path, of: "key", message }];
  }
  return [];
}

function routeProblems(routes: unknown, configured: boolean): PathProblem[] {
  return listAt(routes).flatMap((entry, index): PathProblem[] => {
    const route = mappingAt(entry);
    if (route["assertion"] !== true) return [];
    const path = ["routes", index, "assertion"];
    if (!configured) return [{ path, message: "needs tokens.assertion" }];
    if (route["auth"] !== "none") return [];
    return [{ path, message: "needs a caller, and a route with auth: none has no caller" }];
  });
}

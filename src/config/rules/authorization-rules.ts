import { withSuggestion, type PathProblem } from "../path-problem.ts";
import { listAt, mappingAt, textAt } from "../schema/untyped.ts";

/** Checks that routes name existing entries of `authorization`, and that each SubjectAccessReview has known issuers. */
export function authorizationProblems(
  written: unknown,
  routes: unknown,
  tokens: unknown,
): PathProblem[] {
  const entries = mappingAt(written);
  const trusted = listAt(mappingAt(tokens)["trusted"]).map((entry) => mappingAt(entry));
  const own = textAt(mappingAt(tokens)["issuer"]) ?? "sallyport";
  const issuers = [own, ...trusted.flatMap(({ issuer }) => textAt(issuer) ?? [])];
  const reviewed = trusted.some(({ tokenReview }) => tokenReview !== undefined);
  return [
    ...routeProblems(routes, Object.keys(entries)),
    ...Object.entries(entries).flatMap(([name, entry]): PathProblem[] => {
      const { kind, issuers: named } = mappingAt(entry);
      if (kind !== "subjectAccessReview") return [];
      const path = ["authorization", name];
      if (named === undefined) {
        const message =
          "needs issuers: without tokenReview, it is unknown which issuer's subjects are users of the cluster";
        return reviewed ? [] : [{ path, message }];
      }
      return listAt(named).flatMap((issuer, index) => {
        const text = textAt(issuer);
        if (text === undefined || issuers.includes(text)) return [];
        const message =
          "is not an issuer whose tokens are accepted: see tokens.issuer and tokens.trusted";
        return [withSuggestion({ path: [...path, "issuers", index], message }, text, issuers)];
      });
    }),
  ];
}

function routeProblems(routes: unknown, names: readonly string[]): PathProblem[] {
  return listAt(routes).flatMap((entry, index): PathProblem[] => {
    const route = mappingAt(entry);
    const name = textAt(route["authorize"]);
    if (name === undefined) return [];
    const path = ["routes", index, "authorize"];
    if (!names.includes(name)) {
      const problem = { path, message: "names an entry of authorization that does not exist" };
      return [withSuggestion(problem, name, names)];
    }
    if ((route["auth"] ?? "required") === "required") return [];
    const message = "needs auth: required: without a token, there is no caller to authorize";
    return [{ path, message }];
  });
}

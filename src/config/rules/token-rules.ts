import type { PathProblem } from "../path-problem.ts";
import { listAt, mappingAt, textAt } from "../schema/untyped.ts";
import { repeated, unknownIssuers, type Written } from "./written.ts";

/** Rules about `tokens`, and about the entries of `authorization` that refer to its issuers. */

export function issuerProblems({ whole, issuers: [own] }: Written): PathProblem[] {
  const trusted = listAt(whole, "tokens", "trusted").map((entry, index) => ({
    issuer: textAt(entry, "issuer"),
    path: ["tokens", "trusted", index, "issuer"],
  }));
  return [
    ...trusted
      .filter(({ issuer }) => issuer === own)
      .map(({ path }) => ({ path, message: "is Sallyport's own issuer" })),
    ...repeated(trusted, ({ issuer }) => issuer).map(({ path }) => ({
      path,
      message: "is listed twice",
    })),
  ];
}

/** Checks that each SubjectAccessReview has known issuers. */
export function reviewProblems(written: Written): PathProblem[] {
  const { whole } = written;
  const trusted = listAt(whole, "tokens", "trusted");
  const reviewed = trusted.some((entry) => mappingAt(entry)["tokenReview"] !== undefined);
  return Object.entries(mappingAt(whole, "authorization")).flatMap(([name, entry]) => {
    const { kind, issuers } = mappingAt(entry);
    const path = ["authorization", name];
    if (kind !== "subjectAccessReview") return [];
    if (issuers !== undefined) return unknownIssuers(issuers, [...path, "issuers"], written);
    const message =
      "needs issuers: without tokenReview, it is unknown which issuer's subjects are users of the cluster";
    return reviewed ? [] : [{ path, message }];
  });
}

/** Checks that assertions can be signed and verified, and can never be accepted as tokens. */
export function assertionKeyProblems({ whole }: Written): PathProblem[] {
  const tokens = mappingAt(whole, "tokens");
  const { assertion } = tokens;
  if (assertion === undefined) return [];
  const path = ["tokens", "assertion"];
  const problems: PathProblem[] = [];
  const add = (problem: PathProblem): void => void problems.push(problem);
  if (textAt(assertion, "audience") === (textAt(tokens, "audience") ?? "sallyport")) {
    const message = "is the audience of tokens, too: an assertion could be sent as a token";
    add({ path: [...path, "audience"], message });
  }
  const algorithm = textAt(tokens, "algorithm") ?? "ES256";
  const own = textAt(assertion, "algorithm");
  const keys = textAt(assertion, "keys");
  const shared = keys === undefined && tokens["keys"] !== undefined;
  if (shared && own !== undefined && own !== algorithm) {
    const message = `needs tokens.assertion.keys: the keys of tokens.keys sign ${algorithm}`;
    add({ path: [...path, "algorithm"], message });
  } else if (keys !== undefined && keys === tokens["keys"]) {
    const message = "is the directory of tokens.keys: assertions need keys of their own";
    add({ path: [...path, "keys"], message });
  } else if (own === undefined && algorithm.startsWith("HS")) {
    const message =
      "needs another algorithm: a backend that verifies an HMAC has the key to forge one";
    add({ path, of: "key", message });
  }
  return problems;
}

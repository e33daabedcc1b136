import { VERSION_FORM } from "../../core/version-source.ts";
import { foldedName } from "../../lib/http/header-values.ts";
import { ASSERTION_HEADER } from "../../upstream/headers/header-names.ts";
import { IDENTITY_PRESETS } from "../../upstream/headers/identity-headers.ts";
import type { PathProblem } from "../path-problem.ts";
import { listAt, mappingAt, textAt } from "../schema/untyped.ts";
import {
  accessProblems,
  assertionProblems,
  authorizeProblems,
  requiredIssuerProblems,
} from "./caller-rules.ts";
import { headerProblems, loggedTokenProblems, underscoreProblems } from "./header-rules.ts";
import { listenerProblems, probeProblems, proxyProblems } from "./listener-rules.ts";
import {
  nameProblems,
  networkProblems,
  overlapProblems,
  patternProblems,
  prefixProblems,
  upstreamProblems,
} from "./route-rules.ts";
import { assertionKeyProblems, issuerProblems, reviewProblems } from "./token-rules.ts";
import { certificateProblems, protocolProblems, resolveProblems } from "./upstream-rules.ts";
import {
  NO_UPSTREAM,
  repeated,
  type RouteRule,
  unknownName,
  type UpstreamRule,
  type Written,
  writtenIn,
} from "./written.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Checks rules that involve several keys: references, duplicates, and keys that exclude each other. Works on the
 * unvalidated value, so that these problems are reported together with those of the schema.
 */
export function ruleProblems(value: unknown, env: Environment): PathProblem[] {
  const written = writtenIn(value);
  const ofRoutes = (...rules: readonly RouteRule[]): PathProblem[] =>
    written.routes.flatMap((route, index) =>
      rules.flatMap((rule) => rule(route, ["routes", index], written)),
    );
  const ofUpstreams = (rule: UpstreamRule): PathProblem[] =>
    written.upstreams.flatMap((name) =>
      rule(mappingAt(written.whole, "upstreams", name), ["upstreams", name]),
    );
  return [
    ...listenerProblems(written),
    ...proxyProblems(written),
    ...probeProblems(written),
    ...userProblems(written),
    ...issuerProblems(written),
    ...ofRoutes(authorizeProblems),
    ...reviewProblems(written),
    ...ofRoutes(assertionProblems),
    ...assertionKeyProblems(written),
    ...versionProblems(written, env),
    ...identityProblems(written),
    ...missingRoutes(written),
    ...ofRoutes(upstreamProblems, patternProblems, accessProblems, networkProblems, prefixProblems),
    ...nameProblems(written),
    ...overlapProblems(written),
    ...ofRoutes(headerProblems),
    ...ofRoutes(underscoreProblems),
    ...loggedTokenProblems(written),
    ...ofRoutes(requiredIssuerProblems),
    ...ofUpstreams(certificateProblems),
    ...ofUpstreams(protocolProblems),
    ...ofUpstreams(resolveProblems),
  ];
}

function missingRoutes({ whole, upstreams }: Written): PathProblem[] {
  if (whole["routes"] !== undefined || upstreams.length < 2) return [];
  const message = "is missing: there is more than one upstream to choose from";
  return [{ path: ["routes"], message }];
}

function userProblems({ whole }: Written): PathProblem[] {
  const stores = [...listAt(whole, "users").entries()];
  const message = "is the same file as that of another entry";
  return repeated(stores, ([, store]) => textAt(store, "path")).map(([index]) => ({
    path: ["users", index, "path"],
    message,
  }));
}

function versionProblems({ whole, upstreams }: Written, env: Environment): PathProblem[] {
  const variable = textAt(whole, "version", "env");
  const value = variable === undefined ? undefined : env[variable];
  const upstream = textAt(whole, "version", "upstream");
  const ofUpstream = unknownName(upstream, upstreams, ["version", "upstream"], NO_UPSTREAM);
  if (variable === undefined || (value !== undefined && VERSION_FORM.test(value))) {
    return ofUpstream;
  }
  const message =
    value === undefined
      ? "names an environment variable that is not set"
      : "names an environment variable that is not major.minor.patch";
  return [{ path: ["version", "env"], message }, ...ofUpstream];
}

/** Reports a header that would carry two values. `_` counts as `-`, since CGI backends do not distinguish them. */
function identityProblems({ whole }: Written): PathProblem[] {
  const { headers, claims } = mappingAt(whole, "identity");
  const own = Object.entries(mappingAt(headers)).map(([key, value]) => ({
    path: ["identity", "headers", key],
    of: "value" as const,
    header: textAt(value) ?? "",
  }));
  const further = Object.keys(mappingAt(claims)).map((header) => ({
    path: ["identity", "claims", header],
    of: "key" as const,
    header,
  }));
  const preset = textAt(headers) ?? "sallyport";
  const assertion = mappingAt(whole, "tokens")["assertion"];
  const taken: string[] = [
    ...(own.length === 0 && isPreset(preset) ? Object.values(IDENTITY_PRESETS[preset]) : []),
    ...(assertion === undefined ? [] : [textAt(assertion, "header") ?? ASSERTION_HEADER]),
  ];
  const trusted = listAt(whole, "server", "trustedHeaders").map((header, index) => ({
    path: ["server", "trustedHeaders", index],
    of: "value" as const,
    header: textAt(header) ?? "",
  }));
  const again = repeated(
    [...own, ...further, ...trusted],
    ({ header }) => foldedName(header) || undefined,
    taken.map(foldedName),
  );
  const message = "is the same header as another one here";
  return again.map(({ path, of }) => ({ path, of, message }));
}

function isPreset(name: string): name is keyof typeof IDENTITY_PRESETS {
  return Object.hasOwn(IDENTITY_PRESETS, name);
}

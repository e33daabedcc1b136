import { z } from "zod";
import { claimName, headerName, optional, settings } from "../fields.ts";
import { ASSERTION_HEADER, belongsToProxy } from "../../upstream/headers/header-names.ts";
import { foldedName } from "../../lib/http/header-values.ts";
import { listAt, mappingAt, type PathProblem, repeated, textAt, type Written } from "../written.ts";
import { IDENTITY_PRESETS } from "../../upstream/headers/identity-headers.ts";

/** The section `identity`. */
export const identity = { schema: identitySection, rules: [identityProblems] };

/** Headers that already have a meaning for the backend, besides those that belong to the proxy. */
const TAKEN =
  /^(?:accept|authorization|content-.*|cookie|date|max-forwards|origin|proxy-.*|range|referer|sec-.*|traceparent|tracestate|user-agent|via|x-auth-client-(?:subject|spiffe-id|dns-names))$/;

function identityHeader() {
  return headerName().refine(
    (name) => !TAKEN.test(foldedName(name)) && !belongsToProxy(name),
    "must not be a header that already has a meaning",
  );
}

function identitySection() {
  const names = z.strictObject({
    subject: identityHeader().describe("Header for the subject"),
    groups: optional("Header for the groups, separated by commas", identityHeader()),
    issuer: optional("Header for the issuer", identityHeader()),
  });
  const presets = z.enum(["sallyport", "oauth2-proxy", "kube-rbac-proxy"]);
  return settings("How Sallyport tells the backend who is calling", {
    headers: z
      .union([presets, names], {
        error: "must be sallyport, oauth2-proxy, kube-rbac-proxy or { subject, groups, issuer }",
      })
      .default("sallyport")
      .describe("A preset, or names of your own"),
    claims: z
      .record(identityHeader(), claimName().describe("Claim that the header `<name>` carries"))
      .default({})
      .describe("Further headers, by name, with the claim that each carries"),
  });
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

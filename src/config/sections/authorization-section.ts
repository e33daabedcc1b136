import { z } from "zod";
import { isRequestValue } from "../../policy/remote/request-template.ts";
import {
  apiServer,
  entryName,
  line,
  onError,
  optional,
  optionalMapping,
  remoteAccess,
  remoteTimes,
  remoteUrl,
  staleTime,
  text,
} from "../fields.ts";
import { listAt, mappingAt, type PathProblem, unknownIssuers, type Written } from "../written.ts";

/** The section `authorization`: servers that authorize callers. */
export const authorization = {
  schema: authorizationSection,
  rules: [reviewProblems],
};

const REFERENCE = /\$\{([^{}]*)\}/g;

function attribute() {
  return line()
    .refine((value) => {
      const known = (all: string, word: string): string => (isRequestValue(word) ? "" : all);
      return !value.replaceAll(REFERENCE, known).includes("${");
    }, "contains a ${…} that is neither ${query:NAME} nor ${header:NAME}")
    .exactOptional();
}

function subjectAccessReview() {
  return z.strictObject({
    kind: z.literal("subjectAccessReview").describe("Asks Kubernetes RBAC"),
    apiServer: apiServer(),
    ...remoteAccess(),
    issuers: optional(
      "Issuers whose subjects are users of the cluster; default: those with tokenReview",
      z.array(text()).min(1),
    ),
    resource: optionalMapping(
      "What the caller must be allowed to use; may contain ${query:NAME} and ${header:NAME}. Default: the path",
      {
        group: attribute().describe("API group; empty for the core group"),
        version: attribute().describe("API version"),
        resource: attribute().describe("Resource, in the plural"),
        subresource: attribute().describe("Subresource"),
        namespace: attribute().describe("Namespace"),
        name: attribute().describe("Name of the object"),
      },
    ),
    ...remoteTimes({ timeout: "2s", cache: "30s" }),
    staleFor: staleTime(),
    onError: onError(),
  });
}

function http() {
  return z.strictObject({
    kind: z.literal("http").describe("Asks an HTTP server, such as Open Policy Agent"),
    url: remoteUrl().describe("URL that is asked by POST"),
    ...remoteAccess(),
    ...remoteTimes({ timeout: "500ms", cache: "0s" }),
    onError: onError(),
  });
}

/** The servers that authorize callers. */
function authorizationSection() {
  return z
    .record(entryName(), z.discriminatedUnion("kind", [subjectAccessReview(), http()]))
    .default({})
    .describe("Servers that authorize callers, by name, for routes with authorize");
}

/** Checks that each SubjectAccessReview has known issuers. */
function reviewProblems(written: Written): PathProblem[] {
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

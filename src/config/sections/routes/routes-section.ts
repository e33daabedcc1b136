import { bypassProblems } from "./bypass-rules.ts";
import { isIP } from "node:net";
import { z } from "zod";
import {
  duration,
  entryName,
  headerName,
  isHost,
  METHOD,
  name,
  NAME,
  network,
  oneOf,
  optional,
  optionalMapping,
  pathRegex,
  refuse,
  size,
  sizeOrUnlimited,
  text,
  urlPath,
  whole,
  wholeSeconds,
  withoutEscapes,
} from "../../fields.ts";
import {
  accessKeys,
  accessProblems,
  assertionProblems,
  authorizeProblems,
  requiredIssuerProblems,
  requiredProofProblems,
} from "./route-access.ts";
import { decidesOnly } from "../decisions-section.ts";
import { headerKeys, headerProblems, rewrite, underscoreProblems } from "./route-changes.ts";
import {
  listAt,
  type Mapping,
  mappingAt,
  NO_UPSTREAM,
  ofEachRoute,
  type PathProblem,
  textAt,
  unknownName,
  type Written,
} from "../../written.ts";
import { isSpelling } from "../../../lib/http/path/canonical-path.ts";
import type { YamlPath } from "../../../lib/files/positioned-yaml.ts";
import { comparableExpression } from "../../../policy/path-automata.ts";
import { OWN_ROUTES } from "../../../observe/metrics/series.ts";

/** The sections `routes` and `networks`: which requests a route matches, where it sends them, and its limits. */
export const routes = {
  schema: routesSection,
  rules: [
    ofEachRoute(authorizeProblems, assertionProblems),
    missingRoutes,
    ofEachRoute(upstreamProblems, patternProblems, accessProblems, networkProblems, prefixProblems),
    nameProblems,
    overlapProblems,
    ofEachRoute(headerProblems),
    ofEachRoute(underscoreProblems),
    ofEachRoute(requiredIssuerProblems),
    ofEachRoute(requiredProofProblems),
  ],
  rulesOfValid: [bypassProblems],
};

const HOST_PATTERN = "must be a host name without a port, such as api.example.com or *.example.com";

/** The keys that determine which requests a route matches. */
function matching() {
  return {
    hosts: z
      .array(
        z
          .string()
          .refine((host) => isHost(host.replace(/^\*\./, "")), HOST_PATTERN)
          .transform((host) => host.toLowerCase()),
      )
      .min(1)
      .exactOptional()
      .describe("Host names; *.example.com matches one label. Default: all"),
    path: optional("Path prefix, on segment boundaries; default: /", urlPath("prefix")),
    exact: optional("One exact path", urlPath("exact")),
    regex: optional("Regular expression for the whole path", pathRegex()),
    methods: optional("Methods; default: all", z.array(z.string().superRefine(checkMethod)).min(1)),
    headers: matchedHeaders(),
  };
}

/** The upstream of routes that forward nothing. No upstream has this name. */
export const NOWHERE = "";

function route() {
  return z
    .strictObject({
      name: name().describe("Name in metrics and log: 1 to 64 of a-z, 0-9, _ and -"),
      ...matching(),
      allow: networkList()
        .exactOptional()
        .describe("Networks, or names of them, that may send requests; others get 403"),
      deny: optional("Networks, or names of them, that get 403", networkList()),
      paths: oneOf(["strict", "encoded", "asSent"], "strict").describe(
        "Paths to accept: encoded also those with %2F, %3B and the like, asSent also those with //, ; and brackets",
      ),
      ...accessKeys(),
      upstream: optional("Upstream; required unless decisions.only", text()),
      forwardAuthorization: oneOf(["strip", "keep"], "strip").describe(
        "Whether the backend gets the Authorization header",
      ),
      limits: optionalMapping("Overrides server.limits", {
        bodyBytes: optional("Size of a request's body", sizeOrUnlimited()),
      }),
      rateLimit: optional("Limits the requests of one caller (429)", rateLimit()),
      rewrite: optional("Rewrites the path for the backend", rewrite()),
      ...headerKeys(),
      timeouts: optionalMapping("Overrides those of the upstream", {
        response: optional("Time until the response head", duration()),
        idle: optional("Maximum silence within a body", duration()),
      }),
      concurrency: optionalMapping("Limits the requests in flight", {
        requests: whole(1, 1_000_000).describe("Requests in flight; further ones get 429"),
        by: oneOf(["route", "subject", "client"], "route").describe(
          "What counts together: all of the route, or those of one subject or client",
        ),
      }),
      authorize: optional(
        "Entry of authorization that must allow the request, after require",
        text(),
      ),
      retry: retry(),
      mirror: mirror(),
      assertion: optional("Whether the backend gets an assertion: tokens.assertion", z.boolean()),
    })
    .transform(({ path, exact, regex, upstream = NOWHERE, ...others }) => {
      const rest = { ...others, upstream };
      if (exact !== undefined) return { ...rest, exact };
      return regex === undefined ? { ...rest, path: path ?? "/" } : { ...rest, regex };
    });
}

function checkMethod(method: string, context: z.RefinementCtx<string>): void {
  if (method === "CONNECT" || method === "TRACE") {
    refuse(context, "must not be CONNECT or TRACE");
  } else if (!METHOD.test(method)) {
    const upper = method.toUpperCase();
    const hint = /^[A-Z]+$/.test(upper) ? `did you mean ${upper}?` : undefined;
    refuse(context, "must be a method in upper case", { hint });
  }
}

function routesSection() {
  return z
    .array(route())
    .min(1, "must not be empty: leave it out to send everything to the only upstream")
    .exactOptional()
    .describe("Which requests go to which upstream; default: everything goes to the only upstream");
}

const NETWORK_OR_NAME = "must be a network such as 10.0.0.0/8, or a name under networks";

function networkList() {
  return z
    .array(
      z
        .string()
        .refine((text) => NAME.test(text) || network().safeParse(text).success, NETWORK_OR_NAME),
    )
    .min(1);
}

/** Header fields that a request must have to match the route. */
function matchedHeaders() {
  return z
    .record(
      headerName(),
      z
        .string()
        .regex(/^[!-~](?:[ -~]*[!-~])?$/, "must be printable ASCII without blanks around it")
        .describe("Value that the only field of this name must have"),
    )
    .refine((headers) => Object.keys(headers).length > 0, "must name at least one header")
    .exactOptional()
    .describe("Header fields that a request must have");
}

function rateLimit() {
  return z.strictObject({
    requests: whole(1, 1_000_000).describe("Sustained rate: requests per within"),
    within: wholeSeconds({ min: 1_000 }).prefault("1s").describe("Period, in whole seconds"),
    burst: optional("Requests at once; default: requests", whole(1, 1_000_000)),
    by: optional(
      "What counts as one caller; default: subject, or address with auth: none or optional",
      z.enum(["subject", "address"]),
    ),
  });
}

/** Statuses are written as numbers, too, as elsewhere in the file. */
function retryCause() {
  return z
    .literal(["connect", "stale", "502", "503", "504", 502, 503, 504])
    .transform((written) => (typeof written === "number" ? (`${written}` as const) : written));
}

function retry() {
  return optionalMapping("When a request is sent again", {
    attempts: whole(0, 5).default(1).describe("Maximum number of retries"),
    on: z
      .array(retryCause())
      .prefault(["connect", "stale"])
      .describe(
        "connect: no connection; stale: it closed before the response; statuses: only for idempotent methods",
      ),
  });
}

/** Copies of requests for another upstream. */
function mirror() {
  return optionalMapping("Sends copies of requests to another upstream", {
    upstream: text().describe("Upstream that gets the copies"),
    percent: z.number().min(0).max(100).default(100).describe("Percentage of requests to copy"),
    bodyBytes: size({ max: 2 ** 30 })
      .prefault("1MiB")
      .describe("Longest body to copy"),
  });
}

/** The section `networks`. */
export function networksSection() {
  return z
    .record(entryName(), z.array(network()).min(1).describe("Addresses and networks"))
    .default({})
    .describe("Named networks, for allow and deny of routes");
}

/** Checks that a route has only one of `path`, `exact` and `regex`, and that its `regex` matches some path. */
function patternProblems(route: Mapping, at: YamlPath): PathProblem[] {
  const [first, ...others] = ["path", "exact", "regex"].filter((key) => route[key] !== undefined);
  const problems = others.map((key): PathProblem => {
    const message = `and ${first ?? ""} exclude each other`;
    return { path: [...at, key], of: "key", message };
  });
  const paths = textAt(route, "paths") ?? "strict";
  const spelling = isSpelling(paths) ? paths : "asSent";
  if (expressionOf(route)?.matchesSome(spelling) !== false) return problems;
  const message =
    "matches no path: check it for a blank, a query, lower case after %, or something that paths: strict refuses";
  return [...problems, { path: [...at, "regex"], message }];
}

/** Checks that all paths of a route begin with the prefix that it strips. */
function prefixProblems(route: Mapping, at: YamlPath): PathProblem[] {
  const stripped = textAt(route, "rewrite", "stripPrefix");
  if (stripped === undefined || isStripped(route, withoutEscapes(stripped))) return [];
  const message = "must be the beginning of the route's path, up to a slash or its end";
  return [{ path: [...at, "rewrite", "stripPrefix"], message }];
}

/** Whether all paths of a route begin with a prefix that ends at a segment boundary. */
function isStripped(route: Mapping, prefix: string): boolean {
  if (route["regex"] === undefined) return isWithin(pathOf(route), prefix);
  return expressionOf(route)?.isWithin(prefix) ?? true;
}

/** Returns the regular expression of a route; undefined if it has none, or one that does not parse. */
function expressionOf(route: Mapping) {
  const text = textAt(route, "regex");
  return text === undefined ? undefined : comparableExpression(text);
}

function upstreamProblems(
  route: Mapping,
  at: YamlPath,
  { whole, upstreams }: Written,
): PathProblem[] {
  const upstream = textAt(route, "upstream");
  const mirror = textAt(route, "mirror", "upstream");
  const ofMirror = [...at, "mirror", "upstream"];
  const message = "is the upstream of the route: name another";
  const isMissing = route["upstream"] === undefined && !decidesOnly(whole);
  return [
    ...(isMissing ? [{ path: [...at, "upstream"], message: "is missing" }] : []),
    ...unknownName(upstream, upstreams, [...at, "upstream"], NO_UPSTREAM),
    ...unknownName(mirror, upstreams, ofMirror, NO_UPSTREAM),
    ...(mirror === undefined || mirror !== upstream ? [] : [{ path: ofMirror, message }]),
  ];
}

function networkProblems(route: Mapping, at: YamlPath, { whole }: Written): PathProblem[] {
  const networks = Object.keys(mappingAt(whole, "networks"));
  return ["allow", "deny"].flatMap((key) =>
    listAt(route, key).flatMap((entry, index) => {
      const name = textAt(entry) ?? "";
      if (!NAME.test(name) || isIP(name) !== 0) return [];
      return unknownName(name, networks, [...at, key, index], "must name a network that exists");
    }),
  );
}

function pathOf(route: Mapping): string {
  const regex = textAt(route, "regex");
  return regex ?? withoutEscapes(textAt(route, "exact") ?? textAt(route, "path") ?? "/");
}

function isWithin(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(prefix.endsWith("/") ? prefix : `${prefix}/`);
}

function nameProblems({ routes }: Written): PathProblem[] {
  const seen = new Set<string>();
  return routes.flatMap((route, index) => {
    const name = textAt(route, "name");
    if (name === undefined) return [];
    const path = ["routes", index, "name"];
    if (OWN_ROUTES.includes(name)) return [{ path, message: "is reserved: choose another" }];
    if (seen.has(name)) return [{ path, message: "is the name of another route already" }];
    seen.add(name);
    return [];
  });
}

/** Reports routes that match the same requests as an earlier route, if neither is more specific. */
function overlapProblems({ routes }: Written): PathProblem[] {
  const seen = new Map<string, number>();
  return routes.flatMap((route, index) => {
    const keys = requestsOf(route);
    const earlier = keys.map((key) => seen.get(key)).find((found) => found !== undefined);
    for (const key of keys) seen.set(key, seen.get(key) ?? index);
    if (earlier === undefined) return [];
    const [own, other] = [route, routes[earlier]].map((each) => textAt(each, "name") ?? "unnamed");
    const message = `(${own}) answers the same requests as routes[${earlier}] (${other})`;
    return [{ path: ["routes", index], message }];
  });
}

/** Returns one string for every combination of host, path and method that a route names. */
function requestsOf(route: Mapping): string[] {
  const kind = ["regex", "exact"].find((key) => route[key] !== undefined) ?? "prefix";
  const words = (key: string): string[] =>
    route[key] === undefined ? ["any"] : listAt(route, key).map((word) => textAt(word) ?? "");
  const hosts = new Set(words("hosts").map((host) => host.toLowerCase()));
  const methods = new Set(words("methods"));
  const headers = Object.entries(mappingAt(route, "headers"))
    .map(([name, value]) => `${name.toLowerCase()}: ${textAt(value) ?? ""}`)
    .toSorted()
    .join("\n");
  return [...hosts].flatMap((host) =>
    [...methods].map((method) => `${host} ${method} ${kind} ${pathOf(route)} ${headers}`),
  );
}

function missingRoutes({ whole, upstreams }: Written): PathProblem[] {
  if (whole["routes"] !== undefined || upstreams.length < 2) return [];
  const message = "is missing: there is more than one upstream to choose from";
  return [{ path: ["routes"], message }];
}

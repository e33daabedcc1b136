import { METADATA_PATH } from "../../server/endpoints/resource-metadata.ts";
import { availableParallelism } from "node:os";
import { type Reusable, reuseOrCreate } from "../../lib/async/leased.ts";
import { certificatesIn } from "../../server/tls/certificate.ts";
import { Certificates } from "../../tokens/certificates/certificates.ts";
import { RevocationList } from "../../tokens/revocation/revocation-list.ts";
import type { GateOptions } from "./gate-options.ts";
import { routeRow } from "../../config/sections/routes/route-row.ts";
import type { Configuration } from "../../config/configuration.ts";
import type { AccessFields } from "../../core/request/outcome.ts";
import { knowsCallers } from "../../policy/authorize.ts";
import { RateLimit, localArrivalTimes } from "../../policy/rates/rate-limiter.ts";
import { countInFlight, ConcurrencyLimit } from "../../policy/concurrency/concurrency-limiter.ts";
import { type Cors, createCors } from "../../server/endpoints/cors.ts";
import type { Route } from "../../core/route/route.ts";
import { OtherTokens } from "../../core/request/other-tokens.ts";
import { tokenCheckOf } from "../../tokens/remote/token-check-kinds.ts";
import { AUTHORIZATION, type TokenPlace, TokenPlaces } from "../../core/request/token-place.ts";
import { LONGEST_TIMER_MS, systemClock } from "../../lib/clock.ts";
import { foldedName } from "../../lib/http/header-values.ts";
import { createNetworks } from "../../lib/http/networks.ts";
import { createAccessFields, leastLoggedStatus } from "../../observe/log/access-log.ts";
import type { ListenOptions } from "../../server/listener/listen-options.ts";
import { isOwnPath } from "../../lib/http/path/canonical-path.ts";
import type { IntakeOptions } from "../../server/request/intake.ts";
import { storeNames } from "../../credentials/stores/user-store.ts";
import { checksIn } from "./remote-checks.ts";
import type { AssertionSettings } from "../../tokens/assertion/assertions.ts";
import type { HeaderSettings } from "../../upstream/headers/outgoing-headers.ts";
import {
  IDENTITY_PRESETS,
  type IdentityHeaderNames,
} from "../../upstream/headers/identity-headers.ts";

/** Translates the configuration into the options of each feature. */

export type ServerTls = ListenOptions["tls"];

/** Returns the names that become labels of metrics. */
export function seriesOf(configuration: Configuration) {
  const { routes, upstreams, users } = configuration;
  return {
    routes: routes.map(({ name }) => name),
    upstreams: Object.keys(upstreams),
    stores: storeNames(users),
    checks: checksIn(configuration),
    mirrors: [...new Set(routes.flatMap(({ mirror }) => mirror?.upstream ?? []))],
  };
}

/**
 * Returns how long a connection may carry a request without a byte in either direction, in milliseconds: the longest of
 * the other timeouts plus a margin, so that the more specific timeout fires first.
 */
export function stallOf({ server, upstreams, routes }: Configuration): number {
  const longest = (key: "response" | "idle"): number =>
    Math.max(0, ...routes.map(({ timeouts }) => timeouts?.[key] ?? 0));
  const backends = Object.values(upstreams).flatMap(({ queue, timeouts }) => [
    queue.timeout + timeouts.connect + Math.max(timeouts.response, longest("response")),
    Math.max(timeouts.idle, longest("idle")),
  ]);
  return Math.min(
    Math.max(server.timeouts.request, ...backends) + STALL_MARGIN_MS,
    LONGEST_TIMER_MS,
  );
}

const STALL_MARGIN_MS = 2_000;

/** Returns the settings for reading requests. */
export function intakeOptionsOf({ server, routes }: Configuration): Omit<IntakeOptions, "unknown"> {
  return {
    trustedProxies: createNetworks(server.trustedProxies),
    limits: server.limits,
    underscoreHeaders: server.underscoreHeaders,
    loosePaths: routes.some(({ paths }) => paths !== "strict"),
  };
}

/**
 * Returns whether a path is never forwarded: if it is below `server.ownPath` and some of our addresses there are in use. The
 * question of another proxy never is, or that proxy would take the answer of a backend for ours. Nor is a path of the metadata,
 * unless a route names one: a backend could send the clients of another one to an authorization server of its own.
 */
export function ownPathsOf(configuration: Configuration): (matchPath: string) => boolean {
  const { browser, decisions, metadata, routes, server } = configuration;
  const isUsed = browser !== undefined || decisions !== undefined;
  const own = isUsed ? server.ownPath : `${server.ownPath}/decide`;
  if (metadata === undefined || routes.some(isBelowMetadata)) {
    return (matchPath) => isOwnPath(own, matchPath);
  }
  return (matchPath) => isOwnPath(own, matchPath) || isOwnPath(METADATA_PATH, matchPath);
}

function isBelowMetadata(route: Configuration["routes"][number]): boolean {
  const path = "path" in route ? route.path : "exact" in route ? route.exact : route.regex;
  return path.replaceAll("\\", "").startsWith(METADATA_PATH);
}

/** Returns the number of threads that accept connections. */
export function workersOf({ server }: Configuration): number {
  return server.workers === 0 ? availableParallelism() : server.workers;
}

/** Returns the `realm` for challenges (RFC 9110 §11.5), without characters that would need escaping. */
export function realmOf({ tokens }: Configuration): string {
  return tokens.issuer.replaceAll(/[^ !#-[\]-~]/g, "");
}

export function identityHeadersOf({ identity }: Configuration): IdentityHeaderNames {
  const { headers, claims } = identity;
  const names = typeof headers === "string" ? IDENTITY_PRESETS[headers] : headers;
  return { ...names, claims };
}

/** Whether some issuer may bind tokens to keys of clients. */
export function acceptsProofs({ tokens }: Pick<Configuration, "tokens">): boolean {
  return [tokens, ...tokens.trusted].some(({ proof = tokens.proof }) => proof !== "refuse");
}

/** Returns the settings that apply to all forwarded requests. */
export function forwardingOf(configuration: Configuration): HeaderSettings {
  const { underscoreHeaders, trustedHeaders } = configuration.server;
  const comparedHeaders = configuration.routes.flatMap(({ headers }) => Object.keys(headers ?? {}));
  const identityHeaders = identityHeadersOf(configuration);
  const tokenQueries = tokenQueriesOf(configuration);
  const keyHeaders = configuration.routes.flatMap(({ tokenFrom = [] }) =>
    tokenFrom.flatMap((place) => ("apiKey" in place ? [place.apiKey] : [])),
  );
  return {
    identityHeaders,
    underscoreHeaders,
    trustedHeaders,
    comparedHeaders,
    tokenQueries,
    keyHeaders,
    dropsProofs: acceptsProofs(configuration),
  };
}

/**
 * Returns where the callers of our own endpoints may have their tokens: `Authorization`, and every place that a route names.
 * Which route's token a browser brings to `/api/logout` cannot be known from its path. Undefined for `Authorization` alone.
 * An endpoint opens no WebSocket.
 */
export function endpointPlacesOf(configuration: Configuration): TokenPlaces | undefined {
  const { routes, browser } = configuration;
  const byKey = new Map<string, TokenPlace>();
  const ignoring = new Set<string>();
  for (const { others, ...place } of routes.flatMap(({ tokenFrom = [] }) => tokenFrom)) {
    if ("websocketProtocol" in place) continue;
    const header = "header" in place ? place.header : "apiKey" in place ? place.apiKey : undefined;
    const isKey = "apiKey" in place && foldedName(place.apiKey) === AUTHORIZATION;
    const name = header === undefined || isKey ? place : { header: foldedName(header) };
    byKey.set(JSON.stringify(name), place);
    if (others !== undefined) ignoring.add(JSON.stringify(name));
  }
  if (browser !== undefined) byKey.set("", { cookie: browser.cookie });
  const usual = JSON.stringify({ header: AUTHORIZATION });
  byKey.delete(usual);
  if (byKey.size === 0 && ignoring.size === 0) return undefined;
  const list = [[usual, { header: "Authorization" }] as const, ...byKey].map(([key, place]) =>
    ignoring.has(key) ? ({ ...place, others: "ignore" } as const) : place,
  );
  return new TokenPlaces(list, undefined, otherTokensOf(configuration));
}

/** Returns the tokens that nobody here could accept; undefined if no route ignores them. */
function otherTokensOf({ routes, tokens }: Configuration): OtherTokens | undefined {
  const { issuer, assertion, trusted, maxBytes } = tokens;
  const places = routes.flatMap(({ tokenFrom = [] }) => tokenFrom);
  if (!places.some(({ others }) => others === "ignore")) return undefined;
  const checks = trusted.flatMap((each) => tokenCheckOf(each) ?? []);
  return new OtherTokens({
    issuers: [issuer, assertion?.issuer ?? issuer, ...trusted.map((each) => each.issuer)],
    allJwts: checks.some(({ opaqueOnly }) => !opaqueOnly),
    opaque: checks.length > 0,
    maxBytes,
  });
}

/** Returns the headers besides `Authorization` from which some route takes tokens or API keys, in lower case. */
export function tokenHeadersOf({ routes }: Pick<Configuration, "routes">): string[] {
  const places = routes.flatMap(({ tokenFrom = [] }) => tokenFrom);
  const names = places.flatMap((place) =>
    "header" in place ? [place.header] : "apiKey" in place ? [place.apiKey] : [],
  );
  const lower = new Set(names.map((name) => name.toLowerCase()));
  return [...lower].filter((name) => name !== AUTHORIZATION);
}

/** Returns the query parameters from which some route takes tokens. */
export function tokenQueriesOf({ routes }: Pick<Configuration, "routes">): string[] {
  const places = routes.flatMap(({ tokenFrom = [] }) => tokenFrom);
  return [...new Set(places.flatMap((place) => ("query" in place ? [place.query] : [])))];
}

const USUAL_METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/** Returns the CORS policy; undefined if CORS is off. */
export function corsOf(configuration: Configuration): Cors | undefined {
  const { cors, routes } = configuration;
  if (cors === undefined) return undefined;
  const named = routes.flatMap((route) => route.methods ?? USUAL_METHODS);
  // Sallyport's own endpoints use GET, HEAD and POST.
  const all = [...new Set(["GET", "HEAD", "POST", ...named])];
  const givesNonces = acceptsProofs(configuration);
  return createCors({ ...cors, methods: cors.methods ?? all, givesNonces });
}

/** Returns the additional fields of access lines; undefined if there are none. */
export function accessFieldsOf({ log }: Configuration): AccessFields | undefined {
  if (log.access === "none") return undefined;
  return createAccessFields(log.fields, leastLoggedStatus(log.access));
}

/** Returns the settings of assertions for backends; undefined if they are off. */
export function assertionOf({ tokens }: Configuration): AssertionSettings | undefined {
  if (tokens.assertion === undefined) return undefined;
  const { keys: _sign, algorithm: _signs, ...said } = tokens.assertion;
  return { issuer: tokens.issuer, ...said };
}

/**
 * Whether assertions have their own keys: if `tokens.assertion.keys` is set, or if the token keys are not in files,
 * which replicas share.
 */
export function assertsWithOwnKeys({ keys, assertion }: Configuration["tokens"]): boolean {
  return assertion !== undefined && (assertion.keys !== undefined || keys === undefined);
}

/** Returns the routes. @param rateLimitFor creates a limit, or reuses the existing one, like `concurrencyFor`. */
export function routesOf(
  configuration: Configuration,
  rateLimitFor = (route: string, settings: Omit<RateLimit, "take">) =>
    new RateLimit(route, settings, () => localArrivalTimes(systemClock)),
  concurrencyFor = (route: string, settings: Pick<ConcurrencyLimit, "requests" | "by">) =>
    new ConcurrencyLimit(route, settings, countInFlight()),
): Route[] {
  const { routes, browser, server } = configuration;
  const others = otherTokensOf(configuration);
  return routes.map((row) => ({
    ...routeRow(row, server.limits, browser?.cookie, others),
    ...(row.rateLimit === undefined
      ? {}
      : { rateLimit: rateLimitFor(row.name, rateLimitOf(row, row.rateLimit)) }),
    ...(row.concurrency === undefined
      ? {}
      : { concurrency: concurrencyFor(row.name, row.concurrency) }),
  }));
}

function rateLimitOf(
  { auth }: Pick<Route, "auth">,
  written: NonNullable<Configuration["routes"][number]["rateLimit"]>,
): Omit<RateLimit, "take"> {
  const { requests, within, burst = requests } = written;
  const { by = knowsCallers(auth) ? "subject" : "address" } = written;
  return { by, requests, withinMs: within, burst };
}

/** Returns what makes callers of client certificates; undefined if clients are not asked for any. @param before that of the previous gate. */
export function certificatesFor(
  { clientAuthorities: text, revocations = new RevocationList(), clock }: GateOptions,
  before: Reusable<Certificates | undefined> | undefined,
): Reusable<Certificates | undefined> {
  return reuseOrCreate(before, text, () => {
    if (text === undefined) return undefined;
    const authorities = certificatesIn(text, "");
    return new Certificates({
      authorities,
      replacesOthers: before !== undefined,
      revocations,
      clock,
    });
  });
}

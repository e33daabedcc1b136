import type { Configuration } from "../../config/configuration.ts";
import { belongsToEnvoy, FORWARDED_NAMES, isForged } from "../../upstream/headers/header-names.ts";
import { createOutgoingHeaders } from "../../upstream/headers/outgoing-headers.ts";
import { CLIENT_HEADERS, identityAnswers } from "../../upstream/headers/identity-headers.ts";
import type { Permit } from "../../core/request/permit.ts";
import { withoutFields } from "../../lib/http/header-values.ts";
import { createNetworks } from "../../lib/http/networks.ts";
import { NetworkRule } from "../../policy/authorize.ts";
import { hostMatcher } from "../../policy/route-table.ts";
import { Sessions } from "../../server/browser/sessions.ts";
import { ResourceMetadata, scopesIn } from "../../server/endpoints/resource-metadata.ts";
import { Decisions, QUESTION_FIELDS } from "../../server/decisions/decisions.ts";
import { UNMETERED } from "../../server/listener/reading/fair-reading.ts";
import { ambiguous, createIntake } from "../../server/request/intake.ts";
import { Assertions } from "../../tokens/assertion/assertions.ts";
import { ASYMMETRIC_ALGORITHMS } from "../../tokens/keys/algorithms.ts";
import {
  acceptsProofs,
  assertionOf,
  assertsWithOwnKeys,
  forwardingOf,
  identityHeadersOf,
  intakeOptionsOf,
} from "./from-configuration.ts";
import type { GateOptions } from "./gate-options.ts";

/** What answers below `server.ownPath`: people with browsers, and other proxies. */

/** Returns what answers other proxies, if some may ask. */
export function decisionsFor(options: GateOptions): Decisions | undefined {
  const { configuration, clock, assertionKeys, keys } = options;
  const { decisions, server, tokens } = configuration;
  if (decisions === undefined) return undefined;
  const reading = intakeOptionsOf(configuration);
  const assertion = assertionOf(configuration);
  const signing = assertsWithOwnKeys(tokens) ? assertionKeys : keys;
  const assertions = assertion && new Assertions(assertion, signing, clock);
  const trusted = [...decisions.from, ...server.trustedProxies];
  const answers = identityAnswers(identityHeadersOf(configuration), assertions);
  return new Decisions({
    ownPath: server.ownPath,
    from: createNetworks(decisions.from),
    intake: createIntake({
      ...reading,
      ofOthers: true,
      trustedProxies: createNetworks(trusted),
      // The address of the proxy that asks would pass for that of everybody.
      unknown() {
        throw ambiguous("header");
      },
    }),
    ...answers,
    isForged: (name) => isForged(name, QUESTION_FIELDS),
    dropsUnderscores: server.underscoreHeaders === "drop",
    http: decisions.http,
    grpc: decisions.grpc ? grpcFor(configuration, answers.identityNames, assertions) : undefined,
  });
}

function grpcFor(
  configuration: Configuration,
  ofIdentity: readonly string[],
  assertions: Assertions | undefined,
) {
  const module = import("../../server/decisions/envoy-check.ts");
  // Each question that waits for it is told.
  module.catch(() => undefined);
  const outgoing = createOutgoingHeaders(forwardingOf(configuration), assertions);
  // How the client came to it, Envoy says itself.
  const headersFor = (permit: Permit): readonly string[] =>
    withoutFields(outgoing.headers(permit), FORWARDED_NAMES);
  const mostHeaders = configuration.server.limits.headers;
  const identityNames = [...ofIdentity, ...CLIENT_HEADERS];
  return { module, headersFor, identityNames, isOfProxy: belongsToEnvoy, mostHeaders };
}

/** Returns what tells whether a route or the resource of the metadata names a host; undefined if they name none. */
export function ownHostsOf({ routes, metadata: { resource } = {} }: Configuration) {
  const hosts = routes.flatMap((route) => route.hosts ?? []);
  if (resource !== undefined) hosts.push(new URL(resource).hostname);
  return hosts.length === 0 ? undefined : hostMatcher(hosts);
}

/** Returns what programs read to get a token, if `metadata` is configured. */
export function metadataFor(configuration: Configuration): ResourceMetadata | undefined {
  const { metadata, routes, tokens } = configuration;
  if (metadata === undefined) return undefined;
  const { resource, name, documentation } = metadata;
  const places = routes.flatMap(({ tokenFrom = [] }) => tokenFrom);
  const paths = routes.map((route) => ({
    path: "path" in route ? route.path : "exact" in route ? route.exact : "",
    serves: route.hosts === undefined ? () => true : hostMatcher(route.hosts),
    admits: admittedBy(route),
    scopes: scopesIn(route.require),
  }));
  return new ResourceMetadata({
    resource,
    name,
    documentation,
    authorizationServers: tokens.trusted
      .filter(({ tokenReview, issuer }) => tokenReview === undefined && isWebAddress(issuer))
      .map(({ issuer }) => issuer),
    // Programs know no other name of a parameter (RFC 6750 §2.3).
    methods: places.some((place) => "query" in place && place.query === "access_token")
      ? ["header", "query"]
      : ["header"],
    bound: boundTokensIn(configuration),
    paths,
  });
}

/** Returns the members of the metadata about bound tokens: none if they are refused. */
function boundTokensIn(configuration: Configuration): Readonly<Record<string, unknown>> {
  if (!acceptsProofs(configuration)) return {};
  const { tokens, server, apiKeys, routes } = configuration;
  const rules = [tokens, ...tokens.trusted].map(({ proof = tokens.proof }) => proof);
  const isRequired = rules.every((rule) => rule === "require") && apiKeys.length === 0;
  const hasCertificates = server.tls.mode !== "off" && server.tls.clientCertificates !== undefined;
  const needed = routes.filter(({ auth }) => auth !== "none");
  return {
    dpop_signing_alg_values_supported: ASYMMETRIC_ALGORITHMS,
    // A certificate would do as well.
    dpop_bound_access_tokens_required:
      !hasCertificates &&
      (isRequired || (needed.length > 0 && needed.every(({ require }) => require?.proof === true))),
    tls_client_certificate_bound_access_tokens: hasCertificates,
  };
}

function admittedBy(route: Configuration["routes"][number]) {
  if (route.allow === undefined && route.deny === undefined) return undefined;
  const rule = new NetworkRule(route);
  return (client: string): boolean => rule.admits(client);
}

/** Other names of issuers, such as `opaque:main`, are for the configuration alone. */
function isWebAddress(issuer: string): boolean {
  return /^https?:\/\//.test(issuer) && URL.canParse(issuer);
}

/** Returns what people with browsers get, if they sign in here. */
export function sessionsFor(options: GateOptions): Sessions | undefined {
  const { configuration, files, logins, signIns, observer, clock, logOut } = options;
  const { reading = UNMETERED } = options;
  const { browser, server, tokens, users, routes } = configuration;
  if (browser === undefined) return undefined;
  const { cookie, page = { title: "Sallyport" }, lifetime = tokens.lifetime } = browser;
  const hosts = routes.flatMap((route) => route.hosts ?? []);
  return new Sessions({
    logins,
    signIns,
    observer,
    clock,
    reading,
    cookie,
    lifetimeMs: lifetime,
    ownPath: server.ownPath,
    page: page === "off" ? undefined : { ...page, logo: files.logo },
    hasUsers: users.length > 0,
    providers: browser.providers.map(({ name, label = name, automatic, logout: ends }) => ({
      name,
      label,
      automatic,
      signsOut: ends === "provider",
    })),
    isOwnHost: hosts.length === 0 ? () => true : hostMatcher(hosts),
    issuer: tokens.issuer,
    revoke: logOut,
  });
}

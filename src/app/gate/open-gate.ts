import { UNLIMITED } from "../../server/listener/connection-ledger.ts";
import { UNMETERED } from "../../server/listener/reading/fair-reading.ts";
import { Forwarder } from "../../upstream/forward.ts";
import type { Gate } from "../../server/request/gate.ts";
import { localArrivalTimes, RateLimit } from "../../policy/rates/rate-limiter.ts";
import { ConcurrencyLimit, countInFlight } from "../../policy/concurrency/concurrency-limiter.ts";
import type { Route } from "../../core/route/route.ts";
import { Leased, type Reusable, reuseOrCreate, reuseOrLease } from "../../lib/async/leased.ts";
import { openAuthorizer } from "../../policy/remote/authorizer-kinds.ts";
import type { RemoteAuthorizer } from "../../policy/remote/remote-authorizer.ts";
import { authorize, compileRequirements, letPass } from "../../policy/authorize.ts";
import { createRouteTable } from "../../policy/route-table.ts";
import { AUTHENTICATE_PATH, authenticateEndpoint } from "../../server/endpoints/authenticate.ts";
import { logoutEndpoint } from "../../server/endpoints/logout.ts";
import { keySetEndpoint } from "../../server/endpoints/key-set-endpoint.ts";
import {
  fileVersion,
  fixedVersion,
  versionEndpoint,
} from "../../server/endpoints/version-endpoint.ts";
import { ambiguous } from "../../server/request/intake.ts";
import { Assertions } from "../../tokens/assertion/assertions.ts";
import { publishedKeys } from "../../tokens/keys/key-ring.ts";
import { apiKeyVerifier, type VerifyApiKey } from "../../tokens/api-keys/api-keys.ts";
import type { Certificates } from "../../tokens/certificates/certificates.ts";
import { RevocationList } from "../../tokens/revocation/revocation-list.ts";
import { TokenVerifier } from "../../tokens/verify/verifier.ts";
import {
  accessFieldsOf,
  assertionOf,
  assertsWithOwnKeys,
  certificatesFor,
  corsOf,
  endpointPlacesOf,
  forwardingOf,
  ownPathsOf,
  routesOf,
  tokenQueriesOf,
  workersOf,
} from "./from-configuration.ts";
import { authorizationOf, isKeyed, observeCheck } from "./remote-checks.ts";
import type { GateOptions } from "./gate-options.ts";
import { decisionsFor, metadataFor, ownHostsOf, sessionsFor } from "./own-addresses.ts";
import type { TrustedKeys } from "../../tokens/trusted/trusted-keys.ts";
import type { ObserveCheck } from "../../tokens/remote/token-check-kinds.ts";
import type { Configuration } from "../../config/configuration.ts";
import type { VersionSource } from "../../core/version-source.ts";
import {
  Upstream,
  type UpstreamEvents,
  type UpstreamOptions,
} from "../../upstream/pool/upstreams.ts";
import { openBackendVersion } from "../../upstream/version-from-backend.ts";
import { REVOKING_CLAIMS } from "../../core/revocation.ts";
import type { NeededClaims } from "../../core/request/token-verifier.ts";
import { fieldSource } from "../../observe/log/access-log.ts";
import { claimsIn } from "../../upstream/headers/header-changes.ts";
import type { Log } from "../../core/log.ts";
import type { Observer } from "../../core/observer.ts";

/** A gate and its parts. */
export interface OpenGate {
  readonly gate: Gate;
  /** The number of cached tokens. */
  readonly tokenCacheEntries: () => number;
  /** The parts that the next gate may reuse. */
  readonly kept: KeptParts;
  /** The parts that the gate leases; other gates may lease some of them, too. */
  readonly parts: readonly Pick<Leased<unknown>, "release" | "close">[];
}

type KeptByName<Value> = ReadonlyMap<string, Reusable<Value>>;

interface KeptParts {
  /** Including their cached decisions. */
  readonly authorizers: KeptByName<Leased<RemoteAuthorizer>>;
  /** Including its token cache. */
  readonly verifier: Reusable<Leased<TokenVerifier>>;
  /** Including their connections to the backends. */
  readonly upstreams: KeptByName<Leased<Upstream>>;
  /** Including its WebSockets. */
  readonly forwarder: Reusable<Forwarder>;
  /** Including the cached version. */
  readonly version: Reusable<Leased<OpenVersionSource>>;
  /** Including their counts, by route. */
  readonly rateLimits: KeptByName<RateLimit>;
  readonly concurrencies: KeptByName<ConcurrencyLimit>;
  /** Including the callers whom they name. */
  readonly certificates: Reusable<Certificates | undefined>;
}

/**
 * Builds the gate that the configuration describes.
 * @throws ConfigError if a key file that `trustedKeyFiles` does not hold is invalid.
 * @param before the previous gate; parts with the same settings are reused.
 * @returns the gate. Retire it when it is replaced; its parts are then released after its last request.
 */
export function openGate(options: GateOptions, before?: OpenGate): Leased<OpenGate> {
  const { configuration, clock, observer, logins, reading = UNMETERED } = options;
  // Created first, because no other part can fail.
  const verifier = verifierFor(options, before?.kept.verifier);
  const authorizers = authorizersFor(options, before?.kept.authorizers);
  const { routes, ...limits } = routesFor(options, before?.kept);
  const certificates = certificatesFor(options, before?.kept.certificates);
  const own = { ...limits, verifier, authorizers, certificates };
  const kept: KeptParts = { ...connectionsFor(options, before?.kept), ...own };
  const tokens = verifier.value.value;
  const tokenFrom = endpointPlacesOf(configuration);
  const version = versionEndpoint(kept.version.value.value, tokenFrom);
  const reusable = [verifier, kept.version, ...kept.upstreams.values(), ...authorizers.values()];
  const parts = reusable.map(({ value }) => value);
  const login = { logins, observer, clock, reading };
  const authenticate = authenticateEndpoint({ ...login, ...bindingFor(configuration, tokens) });
  const keySet = keySetEndpoint(() => publishedKeys(options));
  const { issuer, revocation } = configuration.tokens;
  const isOwn = ownPathsOf(configuration);
  const sessions = sessionsFor(options);
  const metadata = metadataFor(configuration);
  const fields = sessions?.end;
  const logout = logoutEndpoint({ issuer, revoke: options.logOut, tokenFrom, fields });
  const findRoute = createRouteTable(
    routes.map((route) => withAuthorizer(route, authorizers)),
    () => {
      throw ambiguous("header");
    },
  );
  // In the order in which a request meets them.
  const gate: Gate = {
    acquire: () => leased.acquire(),
    tokensInUrls: tokenQueriesOf(configuration).length > 0,
    cors: corsOf(configuration),
    endpoints: new Map([
      [AUTHENTICATE_PATH, authenticate],
      ...version,
      ...(revocation.logout ? [logout] : []),
      ...(sessions?.endpoints ?? []),
      ...(configuration.tokens.jwks.publish ? [keySet] : []),
      ...(metadata?.endpoints ?? []),
    ]),
    findRoute: (request) => (isOwn(request.matchPath) ? undefined : findRoute(request)),
    nowhere: { auth: "required", tokenFrom: sessions && tokenFrom },
    tokens,
    isOwnHost: ownHostsOf(configuration),
    verifyApiKey: apiKeysFor(options),
    certificates: certificates.value,
    describesRefusals: configuration.tokens.errorDescription,
    authorize,
    letPass,
    forwarder: configuration.decisions?.only === true ? undefined : kept.forwarder.value,
    sessions,
    metadata,
    decisions: decisionsFor(options),
    accessFields: accessFieldsOf(configuration),
    release: () => leased.release(),
  };
  const opened: OpenGate = { gate, tokenCacheEntries: () => tokens.entries, kept, parts };
  const leased = new Leased(opened, () => {
    for (const part of parts) part.release();
  });
  return leased;
}

/** Returns how the tokens of logins are bound to keys of clients. */
function bindingFor({ tokens: { proof } }: Configuration, { proofs }: TokenVerifier) {
  return { proofs: proof === "refuse" ? undefined : proofs, bindsAll: proof === "require" };
}

function apiKeysFor(options: GateOptions): VerifyApiKey | undefined {
  const { configuration, files, revocations = new RevocationList(), clock } = options;
  if (configuration.apiKeys.length === 0) return undefined;
  return apiKeyVerifier(files.apiKeys, revocations, clock);
}

/** Returns the servers that authorize callers, by name. */
function authorizersFor(
  options: GateOptions,
  before: KeptParts["authorizers"] | undefined,
): KeptParts["authorizers"] {
  const { configuration, clock } = options;
  return new Map(
    [...authorizationOf(configuration)].map(([name, settings]) => [
      name,
      reuseOrLease(before?.get(name), settings, () =>
        openAuthorizer(settings, clock, observeCheck({ kind: settings.kind, name }, options)),
      ),
    ]),
  );
}

function withAuthorizer(route: Route, authorizers: KeptParts["authorizers"]): Route {
  const authorizer = authorizers.get(route.authorize ?? "")?.value.value;
  return authorizer === undefined ? route : { ...route, authorizer };
}

/** Returns the routes with their limits. */
function routesFor(
  options: GateOptions,
  before: Pick<KeptParts, "rateLimits" | "concurrencies"> | undefined,
): { readonly routes: Route[] } & Pick<KeptParts, "rateLimits" | "concurrencies"> {
  const { configuration, clock, settleRates, settleConcurrency } = options;
  const { inFlight = countInFlight(), arrivalTimes = () => localArrivalTimes(clock) } = options;
  const rateLimits = new Map<string, Reusable<RateLimit>>();
  const concurrencies = new Map<string, Reusable<ConcurrencyLimit>>();
  const routes = routesOf(
    configuration,
    (route, settings) => {
      const kept = reuseOrCreate(
        before?.rateLimits.get(route),
        settings,
        () => new RateLimit(route, settings, arrivalTimes, settleRates),
      );
      rateLimits.set(route, kept);
      return kept.value;
    },
    (route, settings) => {
      const kept = reuseOrCreate(
        before?.concurrencies.get(route),
        settings,
        () => new ConcurrencyLimit(route, settings, inFlight, settleConcurrency),
      );
      concurrencies.set(route, kept);
      return kept.value;
    },
  );
  return { routes, rateLimits, concurrencies };
}

function connectionsFor(
  options: GateOptions,
  before: KeptParts | undefined,
): Pick<KeptParts, "upstreams" | "forwarder" | "version"> {
  const { configuration, files, clock, observer, tracing } = options;
  const { buffered = UNLIMITED, reading = UNMETERED } = options;
  const upstreams = new Map(
    files.upstreams.map((each) => [
      each.name,
      reuseOrLease(before?.upstreams.get(each.name), each, () => openUpstream(options, each)),
    ]),
  );
  const settings = forwardingOf(configuration);
  const assertion = assertionOf(configuration);
  const signing = assertsWithOwnKeys(configuration.tokens) ? "assertionKeys" : "keys";
  const forwarding = [files.upstreams, settings, assertion, signing];
  const forwarder = reuseOrCreate(
    before?.forwarder,
    forwarding,
    () =>
      new Forwarder({
        upstreams: new Map([...upstreams].map(([name, { value }]) => [name, value.value])),
        assertions: assertion && new Assertions(assertion, options[signing], clock),
        ...settings,
        buffered,
        reading,
        clock,
        observer,
        tracing,
      }),
  );
  const asked = askedForVersion(configuration, files.upstreams);
  const version = reuseOrLease(before?.version, [configuration.version, asked], () =>
    openVersionSource(options, asked),
  );
  return { upstreams, forwarder, version };
}

/** Reuses the previous verifier with its cache if the settings are the same. */
function verifierFor(
  options: GateOptions,
  before: Reusable<Leased<TokenVerifier>> | undefined,
): Reusable<Leased<TokenVerifier>> {
  const { configuration, files, keys, revocations } = options;
  const { clock, log, keysChanged } = options;
  // Leaves out the settings that do not affect verification, so that the cache survives a change of them.
  const {
    lifetime: _ours,
    algorithm: _signs,
    keys: _sign,
    jwks: _published,
    revocation: _revoked,
    streams: _ended,
    errorDescription: _told,
    assertion,
    ...verifying
  } = configuration.tokens;
  const { cache, trusted, ...rest } = verifying;
  const settings = {
    ...rest,
    cacheEntries: cache.entries,
    asserts: assertion !== undefined,
    // Each thread has its own cache.
    cacheBytes: Math.ceil(cache.bytes / workersOf(configuration)),
    trusted: trusted.filter(isKeyed),
    remote: trusted.flatMap((each) => (isKeyed(each) ? [] : [{ proof: rest.proof, ...each }])),
    needed: neededClaims(configuration),
  };
  const observed: ObserveCheck = (kind, name) => observeCheck({ kind, name }, options);
  const trustedKeys: Pick<TrustedKeys, "open"> = {
    open: (issuer, changed) => options.trustedKeys.open(issuer, changed, files.trustedKeyFiles),
  };
  const { usedProofs, rememberProof } = options;
  const watched = { revocations, usedProofs, rememberProof, keysChanged };
  const outside = { observeCheck: observed, keys, trustedKeys, ...watched, clock, log };
  return reuseOrLease(before, settings, () => new TokenVerifier({ ...settings, ...outside }));
}

/** A version source that must be closed after use. */
interface OpenVersionSource extends VersionSource {
  close(): Promise<void>;
}

/** Returns the upstream that provides the version, if any. */
function askedForVersion(
  { version }: Configuration,
  upstreams: readonly UpstreamOptions[],
): UpstreamOptions | undefined {
  if (version === undefined || !("upstream" in version)) return undefined;
  return upstreams.find(({ name }) => name === version.upstream);
}

/** Opens the configured source of the version. @param upstream the result of `askedForVersion`. */
function openVersionSource(
  { configuration, version: own, clock }: GateOptions,
  upstream: UpstreamOptions | undefined,
): OpenVersionSource {
  const { version = { text: own } } = configuration;
  if ("upstream" in version) {
    if (upstream === undefined) throw new Error(`there is no upstream ${version.upstream}`);
    return openBackendVersion({ ...version, upstream, clock });
  }
  const local =
    "file" in version
      ? fileVersion(version.file)
      : fixedVersion("text" in version ? version.text : (process.env[version.env] ?? ""));
  return { ...local, close: () => Promise.resolve() };
}

/**
 * Returns the claims of a verified token that the configuration uses. They are sorted, so that two configurations that
 * need the same claims share the cached tokens.
 */
function neededClaims({ routes, identity, tokens, log, browser }: Configuration): NeededClaims {
  const required = routes.map(({ require = {} }) => compileRequirements(require).needs);
  const names = [
    ...required.flatMap((needed) => needed.names),
    // Even without a provider: one that is removed must not take the ends of its sessions with it.
    ...REVOKING_CLAIMS,
    ...(browser?.providers.length ? ["idp"] : []),
    ...Object.values(identity.claims),
    ...Object.values(log.fields).flatMap((written) => {
      const source = fieldSource(written);
      return source?.kind === "claim" ? [source.name] : [];
    }),
    ...(tokens.assertion?.claims.filter((name) => name !== "groups") ?? []),
    ...routes.flatMap(({ requestHeaders, responseHeaders }) =>
      [requestHeaders, responseHeaders].flatMap((changes) =>
        [changes?.set, changes?.add].flatMap((values) =>
          Object.values(values ?? {}).flatMap(claimsIn),
        ),
      ),
    ),
  ];
  return {
    scopes: required.some(({ scopes }) => scopes),
    names: [...new Set(names)].toSorted(),
  };
}

/** Opens an upstream. In a gate without clients, it sends no health checks to its targets. */
function openUpstream(
  { clock, log, observer, buffered }: GateOptions,
  options: UpstreamOptions,
): Upstream {
  const upstream = new Upstream(options, clock, tellTargets(log, observer));
  if (buffered !== undefined) upstream.start();
  return upstream;
}

/**
 * Logs and counts the events of targets. For each name, logs when lookups begin to fail, and when they succeed again.
 */
function tellTargets(log: Log, observer: Observer): UpstreamEvents {
  const unknown = new Set<string>();
  return {
    targetChanged(upstream, target, available, why) {
      const fields = { upstream, target, why };
      if (available) {
        log.info("a target is used again", fields);
        return;
      }
      observer.targetLeftOut(upstream);
      log.warn("a target is left out", fields);
    },
    targetSilent(upstream, target, ms) {
      log.warn("a target answers nothing", { upstream, target, seconds: Math.round(ms / 1000) });
    },
    targetAnswers(upstream, target) {
      log.info("a target answers again", { upstream, target });
    },
    targetResolved(upstream, target, addresses) {
      const fields = { upstream, target, addresses: addresses.join(" ") };
      if (addresses.length > 0) log.info("a target has other addresses", fields);
      else log.error("a target has no address any more", fields);
    },
    targetLookedUp(upstream, target, fault) {
      observer.targetLookedUp(upstream, fault === undefined);
      if (fault === undefined) {
        if (unknown.delete(target)) log.info("a target is found again", { upstream, target });
      } else if (!unknown.has(target)) {
        unknown.add(target);
        log.warn("the name of a target cannot be resolved", { upstream, target, why: fault });
      }
    },
  };
}

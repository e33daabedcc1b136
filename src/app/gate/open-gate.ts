import { UNLIMITED } from "../../core/buffered-bytes.ts";
import { UNMETERED } from "../../core/request/client-reading.ts";
import type { Forwarder } from "../../core/request/forwarder.ts";
import type { Gate } from "../../core/request/gate.ts";
import type { ConcurrencyLimit } from "../../core/route/concurrency.ts";
import type { RateLimit } from "../../core/route/rate-limit.ts";
import type { Route } from "../../core/route/route.ts";
import { reuseOrCreate, reuseOrLease, type Reusable } from "../../lib/async/reuse.ts";
import { Leased } from "../../lib/async/leased.ts";
import { openAuthorizer } from "../../policy/remote/authorizer-kinds.ts";
import type { RemoteAuthorizer } from "../../policy/remote/remote-authorizer.ts";
import { authorize, letPass } from "../../policy/authorize.ts";
import { createRouteTable } from "../../policy/route-table.ts";
import { AUTHENTICATE_PATH, authenticateEndpoint } from "../../server/endpoints/authenticate.ts";
import { LOGOUT_PATH, logoutEndpoint } from "../../server/endpoints/logout.ts";
import { KEY_SET_PATH, keySetEndpoint } from "../../server/endpoints/key-set-endpoint.ts";
import { VERSION_PATHS, versionEndpoint } from "../../server/endpoints/version-endpoint.ts";
import { createConcurrencyLimit } from "../../policy/concurrency/concurrency-limiter.ts";
import { countInFlight } from "../../policy/concurrency/in-flight.ts";
import { localArrivalTimes } from "../../policy/rates/arrival-times.ts";
import { createRateLimit } from "../../policy/rates/rate-limiter.ts";
import { ambiguous } from "../../server/request/request-fields.ts";
import { Assertions } from "../../tokens/assertion/assertions.ts";
import { limitName, settlingOf } from "../../policy/rates/rate-settling.ts";
import { publishedKeys } from "../../tokens/keys/key-ring.ts";
import type { CachingTokenVerifier } from "../../tokens/verify/verifier.ts";
import { createForwarder } from "../../upstream/forward.ts";
import type { Upstream } from "../../upstream/pool/upstreams.ts";
import {
  accessFieldsOf,
  assertionOf,
  assertsWithOwnKeys,
  corsOf,
  endpointPlacesOf,
  forwardingOf,
  routesOf,
  tokenQueriesOf,
} from "./from-configuration.ts";
import { openUpstream } from "./open-upstream.ts";
import { verifierFor } from "./gate-verifier.ts";
import { authorizationOf, observeCheck } from "./remote-checks.ts";
import type { GateOptions } from "./gate-options.ts";
import { askedForVersion, type OpenVersionSource, openVersionSource } from "./gate-version.ts";

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
  readonly verifier: Reusable<Leased<CachingTokenVerifier>>;
  /** Including their connections to the backends. */
  readonly upstreams: KeptByName<Leased<Upstream>>;
  /** Including its WebSockets. */
  readonly forwarder: Reusable<Forwarder>;
  /** Including the cached version. */
  readonly version: Reusable<Leased<OpenVersionSource>>;
  /** Including their counts, by route. */
  readonly rateLimits: KeptByName<RateLimit>;
  readonly concurrencies: KeptByName<ConcurrencyLimit>;
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
  const own = { ...limits, verifier, authorizers };
  const kept: KeptParts = { ...connectionsFor(options, before?.kept), ...own };
  const tokens = verifier.value.value;
  const forwarder = kept.forwarder.value;
  const tokenFrom = endpointPlacesOf(configuration);
  const version = versionEndpoint(kept.version.value.value, tokenFrom);
  const parts = [
    ...[verifier, kept.version, ...kept.upstreams.values(), ...authorizers.values()],
  ].map(({ value }) => value);
  const authenticate = authenticateEndpoint({ logins, observer, clock, reading });
  const keySet = keySetEndpoint(() => publishedKeys(options));
  const { issuer, revocation } = configuration.tokens;
  const logout = logoutEndpoint({ issuer, revoke: options.logOut, tokenFrom });
  const gate: Gate = {
    acquire: () => leased.acquire(),
    release: () => leased.release(),
    endpoints: new Map([
      [AUTHENTICATE_PATH, authenticate],
      ...VERSION_PATHS.map((path) => [path, version] as const),
      ...(revocation.logout ? [[LOGOUT_PATH, logout] as const] : []),
      ...(configuration.tokens.jwks.publish ? [[KEY_SET_PATH, keySet] as const] : []),
    ]),
    tokens,
    describesRefusals: configuration.tokens.errorDescription,
    tokensInUrls: tokenQueriesOf(configuration).length > 0,
    findRoute: createRouteTable(
      routes.map((route) => withAuthorizer(route, authorizers)),
      () => {
        throw ambiguous("header");
      },
    ),
    authorize,
    letPass,
    forwarder,
    cors: corsOf(configuration),
    accessFields: accessFieldsOf(configuration),
  };
  const opened: OpenGate = { gate, tokenCacheEntries: () => tokens.entries, kept, parts };
  const leased = new Leased(opened, () => {
    for (const part of parts) part.release();
  });
  return leased;
}

/** Returns the servers that authorize callers, by name. */
function authorizersFor(
  { configuration, clock, log, observer }: GateOptions,
  before: KeptParts["authorizers"] | undefined,
): KeptParts["authorizers"] {
  return new Map(
    [...authorizationOf(configuration)].map(([name, settings]) => [
      name,
      reuseOrLease(before?.get(name), settings, () =>
        openAuthorizer(
          settings,
          clock,
          observeCheck({ kind: settings.kind, name }, { observer, log, clock }),
        ),
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
      const limit = limitName(route, settings);
      const kept = reuseOrCreate(before?.rateLimits.get(route), settings, () =>
        createRateLimit(settings, arrivalTimes(limit), settlingOf(limit, settleRates)),
      );
      rateLimits.set(route, kept);
      return kept.value;
    },
    (route, settings) => {
      const kept = reuseOrCreate(before?.concurrencies.get(route), settings, () =>
        createConcurrencyLimit(route, settings, inFlight, settleConcurrency),
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
  const { configuration, clock, observer, tracing } = options;
  const { buffered = UNLIMITED, reading = UNMETERED } = options;
  const upstreams = new Map(
    options.upstreams.map((each) => [
      each.name,
      reuseOrLease(before?.upstreams.get(each.name), each, () => openUpstream(options, each)),
    ]),
  );
  const settings = forwardingOf(configuration);
  const assertion = assertionOf(configuration);
  const signing = assertsWithOwnKeys(configuration.tokens) ? "assertionKeys" : "keys";
  const forwarding = [options.upstreams, settings, assertion, signing];
  const forwarder = reuseOrCreate(before?.forwarder, forwarding, () =>
    createForwarder({
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
  const asked = askedForVersion(configuration, options.upstreams);
  const version = reuseOrLease(before?.version, [configuration.version, asked], () =>
    openVersionSource(options, asked),
  );
  return { upstreams, forwarder, version };
}

import type { Configuration } from "../config/schema.ts";
import type { Forwarder } from "../core/forwarder.ts";
import type { Gate } from "../core/gate.ts";
import type { Log } from "../core/log.ts";
import type { LoginService } from "../core/login-service.ts";
import type { Observer } from "../core/observer.ts";
import type { RateLimit } from "../core/rate-limit.ts";
import type { Route } from "../core/route.ts";
import type { Tracing } from "../core/tracing.ts";
import type { Clock } from "../lib/clock.ts";
import { keep, type Kept } from "../lib/kept.ts";
import { authorize, letPass } from "../policy/authorize.ts";
import { createRouteTable } from "../policy/route-table.ts";
import { AUTHENTICATE_PATH, authenticateEndpoint } from "../server/authenticate.ts";
import { KEY_SET_PATH, keySetEndpoint } from "../server/key-set-page.ts";
import { VERSION_PATHS, versionEndpoint } from "../server/version.ts";
import { createRateLimit } from "../state/rate-limit.ts";
import { publishedKeys } from "../tokens/published-keys.ts";
import type { SigningKeys } from "../tokens/signing-keys.ts";
import type { TrustedKeys } from "../tokens/trusted-keys.ts";
import { createForwarder } from "../upstream/forward.ts";
import { Upstream } from "../upstream/upstreams.ts";
import { identityHeadersOf, routesOf, upstreamsOf } from "./from-configuration.ts";
import { type GateVerifier, verifierFor } from "./verifier-of-gate.ts";
import { askedForVersion, type OpenVersionSource, versionSourceOf } from "./version-of-gate.ts";

export interface GateOptions {
  readonly configuration: Configuration;
  /** Sallyport's own version, `<major>.<minor>.<patch>`. */
  readonly version: string;
  readonly keys: SigningKeys;
  /** Outlives the gates, which share what it has fetched; left out, a gate fetches for itself. */
  readonly trustedKeys?: TrustedKeys | undefined;
  readonly logins: LoginService;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: Observer;
  /** Undefined where tracing is off. */
  readonly tracing?: Tracing | undefined;
}

/** A gate, and what must be closed when it is done with. */
export interface OpenGate {
  readonly gate: Gate;
  /** The same for questions: a token that is only asked about is not counted. */
  readonly asked: Gate;
  /** How many verified tokens are remembered. */
  readonly tokenCacheEntries: () => number;
  /** What the next gate may take over. */
  readonly kept: KeptParts;
  /** What is to be closed when no gate has it any more. */
  readonly parts: ReadonlySet<ClosablePart>;
  /** Closes all parts, whoever has them. */
  close(): Promise<void>;
}

export interface ClosablePart {
  close(): void | Promise<void>;
}

type KeptByName<Value> = ReadonlyMap<string, Kept<Value>>;

interface KeptParts {
  /** With the tokens that it has verified. */
  readonly verifier: Kept<GateVerifier>;
  /** With their connections to the backends. */
  readonly upstreams: KeptByName<Upstream>;
  /** With its WebSockets. */
  readonly forwarder: Kept<Forwarder>;
  /** With what the backend has said last. */
  readonly version: Kept<OpenVersionSource>;
  /** With their counts, by the name of the route. */
  readonly rateLimits: KeptByName<RateLimit>;
}

/**
 * Builds the gate that the configuration describes. @throws ConfigError when a file that it names is broken.
 *
 * @param before the gate in whose place it comes: what would be the same again is taken over.
 */
export function openGate(options: GateOptions, before?: OpenGate): OpenGate {
  const { configuration, clock, observer } = options;
  const { routes, rateLimits } = routesFor(options, before?.kept.rateLimits);
  // The last that can fail.
  const kept: KeptParts = {
    ...connectionsFor(options, before?.kept),
    rateLimits,
    verifier: verifierFor(options, before?.kept.verifier),
  };
  const tokens = kept.verifier.value;
  const forwarder = kept.forwarder.value;
  const version = versionEndpoint(kept.version.value.source);
  const parts = new Set<ClosablePart>([
    tokens,
    kept.version.value,
    ...[...kept.upstreams.values()].map(({ value }) => value),
  ]);
  const authenticate = authenticateEndpoint({ logins: options.logins, observer, clock });
  const keySet = keySetEndpoint(() => publishedKeys(options.keys.verification));
  const gate: Gate = {
    endpoints: new Map([
      [AUTHENTICATE_PATH, authenticate],
      ...VERSION_PATHS.map((path) => [path, version] as const),
      ...(configuration.tokens.jwks.publish ? [[KEY_SET_PATH, keySet] as const] : []),
    ]),
    tokens,
    findRoute: createRouteTable(routes),
    authorize,
    letPass,
    forwarder,
  };
  return {
    gate,
    asked: { ...gate, tokens: { verify: (token) => tokens.ask(token) } },
    tokenCacheEntries: () => tokens.entries(),
    kept,
    parts,
    async close() {
      await Promise.all([...parts].map(async (part) => part.close()));
    },
  };
}

/** The routes, each with its own counts where it has a limit of requests. */
function routesFor(
  { configuration, clock }: GateOptions,
  before: KeptByName<RateLimit> | undefined,
): { readonly routes: Route[]; readonly rateLimits: KeptByName<RateLimit> } {
  const rateLimits = new Map<string, Kept<RateLimit>>();
  const routes = routesOf(configuration, (route, settings) => {
    const kept = keep(before?.get(route), settings, () => createRateLimit(settings, clock));
    rateLimits.set(route, kept);
    return kept.value;
  });
  return { routes, rateLimits };
}

function connectionsFor(
  options: GateOptions,
  before: KeptParts | undefined,
): Pick<KeptParts, "upstreams" | "forwarder" | "version"> {
  const { configuration, clock, observer, tracing } = options;
  const wanted = upstreamsOf(configuration);
  const upstreams = new Map(
    wanted.map((each) => [
      each.name,
      keep(before?.upstreams.get(each.name), each, () => new Upstream(each, clock)),
    ]),
  );
  const identityHeaders = identityHeadersOf(configuration);
  const { bodyBytes } = configuration.server.limits;
  const prints = [...upstreams].map(([name, { madeFrom }]) => [name, madeFrom]);
  // JSON knows no Infinity, which stands for no limit.
  const forwarding = [prints, identityHeaders, String(bodyBytes)];
  const forwarder = keep(before?.forwarder, forwarding, () =>
    createForwarder({
      upstreams: new Map([...upstreams].map(([name, { value }]) => [name, value])),
      ...{ identityHeaders, bodyBytes, clock, observer, tracing },
    }),
  );
  const asked = askedForVersion(configuration, wanted);
  const version = keep(before?.version, [configuration.version, asked], () =>
    versionSourceOf(options, asked),
  );
  return { upstreams, forwarder, version };
}

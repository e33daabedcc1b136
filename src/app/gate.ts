import type { Configuration } from "../config/schema.ts";
import type { UpstreamLoad } from "../core/forwarder.ts";
import type { Gate } from "../core/gate.ts";
import type { Log } from "../core/log.ts";
import type { LoginService } from "../core/login-service.ts";
import type { Observer } from "../core/observer.ts";
import type { Tracing } from "../core/tracing.ts";
import type { VersionSource } from "../core/version-source.ts";
import type { Clock } from "../lib/clock.ts";
import { keep, type Kept } from "../lib/kept.ts";
import { authorize, letPass } from "../policy/authorize.ts";
import { createRouteTable } from "../policy/route-table.ts";
import { AUTHENTICATE_PATH, authenticateEndpoint } from "../server/authenticate.ts";
import { KEY_SET_PATH, keySetEndpoint } from "../server/key-set-page.ts";
import { VERSION_PATHS, versionEndpoint } from "../server/version.ts";
import { fileVersion, fixedVersion } from "../server/version-sources.ts";
import { publishedKeys } from "../tokens/published-keys.ts";
import type { SigningKeys } from "../tokens/signing-keys.ts";
import { type CachingTokenVerifier, createTokenVerifier } from "../tokens/verifier.ts";
import { createForwarder, type PooledForwarder } from "../upstream/forward.ts";
import type { UpstreamOptions } from "../upstream/upstreams.ts";
import { backendVersion } from "../upstream/version-from-backend.ts";
import { identityHeadersOf, routesOf, upstreamsOf } from "./from-configuration.ts";

export interface GateOptions {
  readonly configuration: Configuration;
  /** Sallyport's own version, `<major>.<minor>.<patch>`. */
  readonly version: string;
  readonly keys: SigningKeys;
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
  /** How many verified tokens are remembered. */
  readonly tokenCacheEntries: () => number;
  readonly upstreamLoad: (upstream: string) => UpstreamLoad;
  /** What the next gate may take over. */
  readonly kept: KeptParts;
  close(): Promise<void>;
}

interface KeptParts {
  /** With the tokens that it has verified. */
  readonly verifier: Kept<CachingTokenVerifier>;
  /** With its connections to the backends. */
  readonly forwarder: Kept<PooledForwarder>;
}

/**
 * Builds the gate that the configuration describes. @throws ConfigError when a file that it names is broken.
 *
 * @param before the gate in whose place it comes: what would be the same again is taken over.
 */
export function openGate(options: GateOptions, before?: OpenGate): OpenGate {
  const { configuration, clock, observer, tracing } = options;
  const upstreams = upstreamsOf(configuration);
  const forwarding = {
    upstreams,
    identityHeaders: identityHeadersOf(configuration),
    bodyBytes: configuration.server.limits.bodyBytes,
  };
  const kept: KeptParts = {
    verifier: keep(before?.kept.verifier, configuration.tokens, () => verifierOf(options)),
    // JSON knows no Infinity, which stands for no limit.
    forwarder: keep(before?.kept.forwarder, [forwarding, String(forwarding.bodyBytes)], () =>
      createForwarder({ ...forwarding, clock, observer, tracing }),
    ),
  };
  const tokens = kept.verifier.value;
  const forwarder = kept.forwarder.value;
  const versions = versionSourceOf(options, upstreams);
  const version = versionEndpoint(versions.source);
  const authenticate = authenticateEndpoint({ logins: options.logins, observer, clock });
  const keySet = keySetEndpoint(() => publishedKeys(options.keys.verification));
  return {
    gate: {
      endpoints: new Map([
        [AUTHENTICATE_PATH, authenticate],
        ...VERSION_PATHS.map((path) => [path, version] as const),
        ...(configuration.tokens.jwks.publish ? [[KEY_SET_PATH, keySet] as const] : []),
      ]),
      tokens,
      findRoute: createRouteTable(routesOf(configuration, clock)),
      authorize,
      letPass,
      forwarder,
    },
    tokenCacheEntries: () => tokens.entries(),
    upstreamLoad: (upstream) => forwarder.load(upstream),
    kept,
    async close() {
      tokens.close();
      await Promise.all([forwarder.close(), versions.close()]);
    },
  };
}

function verifierOf({
  configuration,
  keys,
  clock,
  log,
  observer,
}: GateOptions): CachingTokenVerifier {
  const { issuer, audience, maxBytes, cache, trusted } = configuration.tokens;
  return createTokenVerifier({
    issuer,
    audience,
    keys,
    maxBytes,
    cacheEntries: cache.entries,
    trusted: trusted.map(({ clockSkew, ...rest }) => ({ ...rest, clockSkewMs: clockSkew })),
    clock,
    log,
    observer,
  });
}

interface OpenVersionSource {
  readonly source: VersionSource;
  close(): Promise<void>;
}

function versionSourceOf(
  { configuration, version: own, clock }: GateOptions,
  upstreams: readonly UpstreamOptions[],
): OpenVersionSource {
  const { version = { text: own } } = configuration;
  if ("upstream" in version) {
    const { path, field } = version;
    const upstream = upstreams.find(({ name }) => name === version.upstream);
    if (upstream === undefined) throw new Error(`there is no upstream ${version.upstream}`);
    const source = backendVersion({ upstream, path, field, clock });
    return { source, close: () => source.close() };
  }
  return { source: localVersion(version), close: () => Promise.resolve() };
}

function localVersion(
  version: { readonly text: string } | { readonly env: string } | { readonly file: string },
): VersionSource {
  if ("text" in version) return fixedVersion(version.text);
  return "file" in version
    ? fileVersion(version.file)
    : fixedVersion(process.env[version.env] ?? "");
}

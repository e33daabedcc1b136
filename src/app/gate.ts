import type { Configuration } from "../config/schema.ts";
import type { Gate } from "../core/gate.ts";
import type { Log } from "../core/log.ts";
import type { LoginService } from "../core/login-service.ts";
import type { Observer } from "../core/observer.ts";
import type { VersionSource } from "../core/version-source.ts";
import type { Clock } from "../lib/clock.ts";
import { authorize } from "../policy/authorize.ts";
import { createRouteTable } from "../policy/route-table.ts";
import { AUTHENTICATE_PATH, authenticateEndpoint } from "../server/authenticate.ts";
import { VERSION_PATHS, versionEndpoint } from "../server/version.ts";
import { fileVersion, fixedVersion } from "../server/version-sources.ts";
import type { SigningKeys } from "../tokens/signing-keys.ts";
import { type CachingTokenVerifier, createTokenVerifier } from "../tokens/verifier.ts";
import { createForwarder } from "../upstream/forward.ts";
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
}

/** A gate, and what must be closed when it is done with. */
export interface OpenGate {
  readonly gate: Gate;
  /** How many verified tokens are remembered. */
  readonly tokenCacheEntries: () => number;
  close(): Promise<void>;
}

/** Builds the gate that the configuration describes. @throws ConfigError when a file that it names is broken. */
export function openGate(options: GateOptions): OpenGate {
  const { configuration, clock, observer } = options;
  const tokens = verifierOf(options);
  const upstreams = upstreamsOf(configuration);
  const forwarder = createForwarder({
    upstreams,
    identityHeaders: identityHeadersOf(configuration),
    bodyBytes: configuration.server.limits.bodyBytes,
    clock,
    observer,
  });
  const versions = versionSourceOf(options, upstreams);
  const version = versionEndpoint(versions.source);
  const authenticate = authenticateEndpoint({ logins: options.logins, observer, clock });
  return {
    gate: {
      endpoints: new Map([
        [AUTHENTICATE_PATH, authenticate],
        ...VERSION_PATHS.map((path) => [path, version] as const),
      ]),
      tokens,
      findRoute: createRouteTable(routesOf(configuration)),
      authorize,
      forwarder,
    },
    tokenCacheEntries: () => tokens.entries(),
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

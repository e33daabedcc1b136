import { type Reusable, reuseOrLease } from "../../lib/async/reuse.ts";
import type { Leased } from "../../lib/async/leased.ts";
import type { TrustedKeys } from "../../tokens/trusted/trusted-keys.ts";
import { CachingTokenVerifier } from "../../tokens/verify/verifier.ts";
import type { ObserveCheck } from "../../tokens/remote/token-check-kinds.ts";
import { isKeyed, observeCheck as observe } from "./remote-checks.ts";
import { neededClaims } from "./needed-claims.ts";
import { workersOf } from "./from-configuration.ts";
import type { GateOptions } from "./gate-options.ts";

/** Reuses the previous verifier with its cache if the settings are the same. */
export function verifierFor(
  options: GateOptions,
  before: Reusable<Leased<CachingTokenVerifier>> | undefined,
): Reusable<Leased<CachingTokenVerifier>> {
  const { configuration, trustedKeyFiles, keys, revocations } = options;
  const { clock, log, observer, keysChanged } = options;
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
    trusted: trusted.filter(isKeyed).map(({ clockSkew, maxLifetime, ...each }) => ({
      ...each,
      clockSkewMs: clockSkew,
      maxLifetimeMs: maxLifetime,
    })),
    remote: trusted
      .filter((each) => !isKeyed(each))
      .map(({ clockSkew, ...each }) => ({ ...each, clockSkewMs: clockSkew })),
    needed: neededClaims(configuration),
  };
  const observeCheck: ObserveCheck = (kind, name) =>
    observe({ kind, name }, { observer, log, clock });
  const trustedKeys: Pick<TrustedKeys, "open"> = {
    open: (issuer, changed) => options.trustedKeys.open(issuer, changed, trustedKeyFiles),
  };
  const outside = { observeCheck, keys, trustedKeys, revocations, clock, log, keysChanged };
  return reuseOrLease(
    before,
    settings,
    () => new CachingTokenVerifier({ ...settings, ...outside }),
  );
}

import type { Observer } from "../core/observer.ts";
import { keep, type Kept } from "../lib/kept.ts";
import { type CachingTokenVerifier, createTokenVerifier } from "../tokens/verifier.ts";
import type { GateOptions } from "./gate.ts";

/** The token verifier of a gate. */
export interface GateVerifier extends CachingTokenVerifier {
  /** As `verify`, and counts nothing. */
  ask(token: string): ReturnType<CachingTokenVerifier["verify"]>;
}

/** The one before with all that it has verified, as long as it would be made from the same settings. */
export function verifierFor(
  { configuration, keys, trustedKeys, clock, log, observer }: GateOptions,
  before: Kept<GateVerifier> | undefined,
): Kept<GateVerifier> {
  const { issuer, audience, maxBytes, cache, trusted } = configuration.tokens;
  const settings = {
    ...{ issuer, audience, maxBytes, cacheEntries: cache.entries },
    trusted: trusted.map(({ clockSkew, ...rest }) => ({ ...rest, clockSkewMs: clockSkew })),
  };
  return keep(before, settings, () => {
    let asking = false;
    const counted: Pick<Observer, "tokenCache"> = {
      tokenCache(result) {
        if (!asking) observer.tokenCache(result);
      },
    };
    const verifier = createTokenVerifier({
      ...{ ...settings, keys, trustedKeys, clock, log },
      observer: counted,
    });
    return {
      ...verifier,
      ask(token) {
        asking = true;
        try {
          // It counts before it returns.
          return verifier.verify(token);
        } finally {
          asking = false;
        }
      },
    };
  });
}
